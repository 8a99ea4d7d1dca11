package deps

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/proveto/proveto/internal/late"
)

// element is any element of a pom.xml.
type element struct {
	XMLName xml.Name
	Text    string    `xml:",chardata"`
	Inner   []element `xml:",any"`
}

func (e *element) child(name string) *element {
	for i := range e.Inner {
		if e.Inner[i].XMLName.Local == name {
			return &e.Inner[i]
		}
	}
	return nil
}

func (e *element) text(name string) string {
	if c := e.child(name); c != nil {
		return strings.TrimSpace(c.Text)
	}
	return ""
}

var mavenProperty = late.Regexp(`\$\{[^}]+\}`)

// pom reads a pom.xml: dependencies, managed ones, plugins, extensions, the
// parent, and the repositories that they come from, wherever in the file they
// stand. Properties of the file are put in; others stay as they are written.
func pom(body []byte) (Set, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	d.Strict = true
	d.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, errors.New("it is not UTF-8") }
	var root element
	if err := d.Decode(&root); err != nil {
		return Set{}, err
	}
	if root.XMLName.Local != "project" {
		return Set{}, errors.New("its root is " + root.XMLName.Local + ", want project")
	}
	properties := map[string]string{"project.version": root.text("version"), "project.groupId": root.text("groupId")}
	collectProperties(&root, properties)
	s := newSet()
	s.walk(&root, "", func(text string) string {
		return mavenProperty().ReplaceAllStringFunc(text, func(p string) string {
			if v, ok := properties[p[2:len(p)-1]]; ok {
				return v
			}
			return p
		})
	})
	return s, nil
}

func collectProperties(e *element, to map[string]string) {
	for i := range e.Inner {
		c := &e.Inner[i]
		if c.XMLName.Local == "properties" {
			for j := range c.Inner {
				p := &c.Inner[j]
				// Profiles may set another value: both count.
				v := strings.TrimSpace(p.Text)
				if old, ok := to[p.XMLName.Local]; ok && old != v {
					v = old + "|" + v
				}
				to[p.XMLName.Local] = v
			}
			continue
		}
		collectProperties(c, to)
	}
}

// walk adds every artifact and repository below an element; way is the list of
// elements above it.
func (s Set) walk(e *element, way string, filled func(string) string) {
	way += "/" + e.XMLName.Local
	for i := range e.Inner {
		c := &e.Inner[i]
		switch c.XMLName.Local {
		case "dependency", "parent", "plugin", "extension":
			group := filled(c.text("groupId"))
			if group == "" && c.XMLName.Local == "plugin" {
				group = "org.apache.maven.plugins"
			}
			use := way
			for _, f := range []string{"scope", "type", "classifier", "optional", "systemPath"} {
				if v := filled(c.text(f)); v != "" {
					use += " " + f + "=" + v
				}
			}
			version := filled(c.text("version"))
			if version == "" {
				version = "managed"
			}
			s.add(group+":"+filled(c.text("artifactId")), Pin{Version: version, Source: use})
		case "repository", "pluginRepository", "snapshotRepository":
			s.add("repository "+filled(c.text("url")), Pin{Version: "repository", Source: way})
		}
		s.walk(c, way, filled)
	}
}
