package deps

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sections of a package.json, each names to versions.
var npmSections = []string{"dependencies", "devDependencies", "optionalDependencies", "peerDependencies"}

// overriding are the sections of a package.json that change what a name resolves
// to wherever it is asked for.
var overriding = []string{"overrides", "resolutions"}

// packageJSON reads a package.json. A name that moves between sections is used
// otherwise, and so is bumped.
func packageJSON(body []byte) (Set, error) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(body, &doc); err != nil {
		return Set{}, err
	}
	s := newSet()
	for _, section := range npmSections {
		var names map[string]string
		if err := member(doc, section, &names); err != nil {
			return Set{}, err
		}
		for name, version := range names {
			p := Pin{Version: version, Source: section}
			if version == "" {
				p.Version = "*"
			}
			s.add(name, p)
		}
	}
	var pnpm map[string]json.RawMessage
	if err := member(doc, "pnpm", &pnpm); err != nil {
		return Set{}, err
	}
	for _, section := range overriding {
		for _, in := range []map[string]json.RawMessage{doc, pnpm} {
			var tree any
			if err := member(in, section, &tree); err != nil {
				return Set{}, err
			}
			s.overrides(section, tree)
		}
	}
	var manager string
	if err := member(doc, "packageManager", &manager); err != nil {
		return Set{}, err
	}
	if manager != "" {
		name, version := SplitVersion(manager)
		s.add(name, Pin{Source: "packageManager " + version})
	}
	return s, nil
}

// member reads one member of an object; a missing one or null leaves v alone.
func member(doc map[string]json.RawMessage, name string, v any) error {
	raw, ok := doc[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// overrides adds the names of a tree of overrides, each with the way to it.
func (s Set) overrides(way string, tree any) {
	m, ok := tree.(map[string]any)
	if !ok {
		return
	}
	for name, v := range m {
		to, isText := v.(string)
		bare, _ := SplitVersion(name[strings.LastIndexByte(name, '>')+1:])
		if isText {
			s.add(bare, Pin{Source: way + " " + name + " => " + to})
			continue
		}
		s.overrides(way+" "+name, v)
	}
}

// SplitVersion cuts the version off a name as npm and declarations write it:
// name@version, @scope/name@version.
func SplitVersion(s string) (name, version string) {
	if i := strings.LastIndexByte(s, '@'); i > 0 {
		return s[:i], s[i+1:]
	}
	return s, ""
}

// packageLock reads a package-lock.json or an npm-shrinkwrap.json. Files of
// version 2 say everything twice; both are read, since different versions of npm
// believe different ones. Members are looked up by their exact names: a decoder
// that folds case would let a second spelling hide the first.
func packageLock(body []byte) (Set, error) {
	var doc, packages, tree map[string]json.RawMessage
	var version int
	if err := json.Unmarshal(body, &doc); err != nil {
		return Set{}, err
	}
	if err := errors.Join(member(doc, "lockfileVersion", &version), member(doc, "packages", &packages), member(doc, "dependencies", &tree)); err != nil {
		return Set{}, err
	}
	if packages == nil && tree == nil && version == 0 {
		return Set{}, errors.New("it has neither packages nor a lockfileVersion")
	}
	s := newSet()
	if packages != nil { // version 1 does not say who is asked for
		s.needs = map[string][]string{}
	}
	for at, raw := range packages {
		var p map[string]json.RawMessage
		if err := json.Unmarshal(raw, &p); err != nil {
			return Set{}, fmt.Errorf("packages %s: %w", at, err)
		}
		needs, err := neededNames(p)
		if err != nil {
			return Set{}, fmt.Errorf("packages %s: %w", at, err)
		}
		i := strings.LastIndex(at, "node_modules/")
		if i < 0 { // the project itself, or a workspace of it
			s.direct = append(s.direct, needs...)
			continue
		}
		name := at[i+len("node_modules/"):]
		if err := s.locked(name, p); err != nil {
			return Set{}, err
		}
		s.needs[name] = append(s.needs[name], needs...)
	}
	return s, s.lockedTree(tree, 0)
}

// neededNames are the names that an entry of packages asks for.
func neededNames(p map[string]json.RawMessage) ([]string, error) {
	var out []string
	for _, section := range npmSections {
		var names map[string]json.RawMessage
		if err := member(p, section, &names); err != nil {
			return nil, err
		}
		out = slices.AppendSeq(out, maps.Keys(names))
	}
	return out, nil
}

// locked adds one entry of a lock file.
func (s Set) locked(name string, p map[string]json.RawMessage) error {
	pin := Pin{Locked: true}
	var link bool
	err := errors.Join(member(p, "version", &pin.Version), member(p, "resolved", &pin.Source), member(p, "integrity", &pin.Checksum), member(p, "link", &link))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if link {
		pin.Version = "link"
	}
	if pin.Version == "" {
		pin.Version = "unversioned"
	}
	s.add(name, pin)
	return nil
}

// lockedTree reads the entries of version 1, which lie in each other.
func (s Set) lockedTree(tree map[string]json.RawMessage, depth int) error {
	if depth > 100 {
		return errors.New("its dependencies lie more than 100 deep in each other")
	}
	for name, raw := range tree {
		var p, below map[string]json.RawMessage
		if err := json.Unmarshal(raw, &p); err != nil {
			return fmt.Errorf("dependencies of %s: %w", name, err)
		}
		if err := member(p, "dependencies", &below); err != nil {
			return fmt.Errorf("dependencies of %s: %w", name, err)
		}
		if err := errors.Join(s.locked(name, p), s.lockedTree(below, depth+1)); err != nil {
			return err
		}
	}
	return nil
}
