package deps

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/mod/modfile"
)

// goMod reads a go.mod. What changes how a dependency is taken is a pin of it
// without a version: a replacement, an exclusion. The go and toolchain lines count
// as dependencies of these names.
func goMod(body []byte) (Set, error) {
	f, err := modfile.Parse("go.mod", body, nil)
	if err != nil {
		return Set{}, err
	}
	s := newSet()
	if f.Module != nil {
		s.add("module", Pin{Source: f.Module.Mod.Path})
	}
	for _, r := range f.Require {
		s.add(r.Mod.Path, Pin{Version: r.Mod.Version})
	}
	for _, x := range f.Exclude {
		s.add(x.Mod.Path, Pin{Source: "exclude " + x.Mod.Version})
	}
	for _, t := range f.Tool {
		s.add(t.Path, Pin{Version: "tool"})
	}
	for _, g := range f.Godebug {
		s.add("godebug "+g.Key, Pin{Source: g.Value})
	}
	s.language(f.Go, f.Toolchain)
	s.replaced(f.Replace)
	return s, nil
}

// goWork reads a go.work.
func goWork(body []byte) (Set, error) {
	f, err := modfile.ParseWork("go.work", body, nil)
	if err != nil {
		return Set{}, err
	}
	s := newSet()
	for _, u := range f.Use {
		s.add(u.Path, Pin{Version: "use"})
	}
	for _, g := range f.Godebug {
		s.add("godebug "+g.Key, Pin{Source: g.Value})
	}
	s.language(f.Go, f.Toolchain)
	s.replaced(f.Replace)
	return s, nil
}

func (s Set) language(g *modfile.Go, t *modfile.Toolchain) {
	if g != nil {
		s.add("go", Pin{Source: g.Version})
	}
	if t != nil {
		s.add("toolchain", Pin{Source: t.Name})
	}
}

func (s Set) replaced(all []*modfile.Replace) {
	for _, r := range all {
		s.add(r.Old.Path, Pin{Source: strings.Join(strings.Fields("replace "+r.Old.Version+" => "+r.New.Path+" "+r.New.Version), " ")})
	}
}

// goSum reads a go.sum: module, version and hash in each line.
func goSum(body []byte) (Set, error) {
	s := newSet()
	s.sums = true
	for i, line := range bytes.Split(body, []byte("\n")) {
		f := strings.Fields(string(line))
		if len(f) == 0 {
			continue
		}
		if len(f) != 3 {
			return Set{}, fmt.Errorf("line %d has %d words, want module, version and hash", i+1, len(f))
		}
		s.add(f[0], Pin{Version: f[1], Checksum: f[2], Locked: true})
	}
	return s, nil
}

// goVendor reads a vendor/modules.txt: "# module version [=> replacement]".
func goVendor(body []byte) (Set, error) {
	s := newSet()
	lines := bufio.NewScanner(bytes.NewReader(body))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "# ")
		if !ok {
			continue
		}
		module, replacement, has := strings.Cut(rest, " => ")
		f := strings.Fields(module)
		if len(f) == 0 || len(f) > 2 {
			return Set{}, fmt.Errorf("%.80q names no module", lines.Text())
		}
		p := Pin{Version: "replaced"}
		if len(f) == 2 {
			p.Version = f[1]
		}
		if has {
			p.Source = "replace => " + replacement
		}
		s.add(f[0], p)
	}
	return s, lines.Err()
}
