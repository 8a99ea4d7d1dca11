package mutate

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"sort"
	"strings"

	"github.com/proveto/proveto/internal/fault"
)

// standIn declares what probes call, for the type check alone.
const standIn = `package %

type _pvt_package struct{}

func (*_pvt_package) Hit(int)                       {}
func (*_pvt_package) On(int) bool                   { return false }
func (*_pvt_package) Watch() bool                   { return false }
func (*_pvt_package) Values(int, ...interface{})    {}
func (*_pvt_package) Saw(int, interface{}, interface{}) {}

var _pvt_p *_pvt_package

`

// maxRounds bounds how often the package is checked anew after probes fell out.
// One round finds nearly all; a second one shows what the first one hid.
const maxRounds = 8

// check type-checks the instrumented package and drops every probe that does
// not compile, until none is left.
func (p *pkg) check() error {
	if p.live() == 0 {
		return nil
	}
	for range maxRounds {
		files, segments := p.render()
		faults, err := p.typeErrors(files)
		if err != nil {
			return err
		}
		if p.blame(faults, segments) == 0 {
			return nil
		}
	}
	return fault.New(fault.Internal, CodeSource, "package %s: probes still do not compile after %d rounds", p.in.Path, maxRounds)
}

func (p *pkg) live() int {
	n := 0
	for _, g := range p.groups {
		n += len(g.live())
	}
	return n
}

// place is where a type error is, in an instrumented file.
type place struct {
	file   string
	offset int
}

func (p *pkg) typeErrors(files map[string][]byte) ([]place, error) {
	fset := token.NewFileSet()
	var syntax []*ast.File
	for _, f := range p.files {
		if f.test {
			continue
		}
		parsed, err := parser.ParseFile(fset, f.name, files[f.name], parser.SkipObjectResolution)
		if err != nil {
			return nil, fault.Wrap(err, fault.Internal, CodeSource, "instrumented %s does not parse", f.rel)
		}
		syntax = append(syntax, parsed)
	}
	extra, err := parser.ParseFile(fset, ExtraName, strings.Replace(standIn, "%", p.in.Types.Name(), 1)+errorDecl, parser.SkipObjectResolution)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, CodeSource, "the stand-in of %s does not parse", p.in.Path)
	}
	var out []place
	conf := types.Config{
		GoVersion:   p.in.Types.GoVersion(),
		Importer:    p.importer(),
		FakeImportC: true,
		Error: func(err error) {
			var te types.Error
			if errors.As(err, &te) {
				at := fset.PositionFor(te.Pos, false)
				out = append(out, place{at.Filename, at.Offset})
			}
		},
	}
	// The first error is also handed to Error, with all others.
	_, _ = conf.Check(p.in.Path, fset, append(syntax, extra), nil)
	return out, nil
}

// imports resolves the imports of a checked package to what they were resolved
// to before.
type imports map[string]*types.Package

func (i imports) Import(path string) (*types.Package, error) {
	if pkg := i[path]; pkg != nil {
		return pkg, nil
	}
	return nil, fault.New(fault.Internal, CodeSource, "import %q was not resolved", path)
}

func (p *pkg) importer() imports {
	out := imports{"unsafe": types.Unsafe}
	for _, f := range p.files {
		for _, spec := range f.syntax.Imports {
			if name := p.in.Info.PkgNameOf(spec); name != nil {
				out[strings.Trim(spec.Path.Value, "`\"")] = name.Imported()
			}
		}
	}
	return out
}

// blame drops the probes that the errors are about and counts them. An error in
// inserted text is about its probe. One in the original text between is about
// the innermost probes around it, unless the package uses cgo, where original
// text is not expected to check here.
func (p *pkg) blame(faults []place, segments map[string][]segment) int {
	dropped := 0
	kill := func(pr *probe) {
		if !pr.dead {
			pr.dead = true
			dropped++
			pr.group.file.pkg.skipped = append(pr.group.file.pkg.skipped,
				Skip{Symbol: pr.site.Symbol, File: pr.site.File, Line: pr.site.Line, Reason: "does_not_compile"})
		}
	}
	cgo := false
	for _, f := range p.files {
		cgo = cgo || f.cgo
	}
	for _, at := range faults {
		segs := segments[at.file]
		i := sort.Search(len(segs), func(i int) bool { return segs[i].from > at.offset }) - 1
		if i >= 0 && at.offset < segs[i].to {
			if segs[i].probe != nil {
				kill(segs[i].probe)
				continue
			}
			for _, pr := range segs[i].group.probes {
				kill(pr)
			}
			continue
		}
		if cgo {
			continue
		}
		original := at.offset
		if i >= 0 {
			original = segs[i].original + at.offset - segs[i].to
		}
		if g := p.around(at.file, original); g != nil {
			for _, pr := range g.probes {
				kill(pr)
			}
		}
	}
	return dropped
}

// around is the innermost group with live probes around an offset.
func (p *pkg) around(name string, offset int) *group {
	var best *group
	for _, g := range p.groups {
		if g.file.name == name && g.start <= offset && offset <= g.end && len(g.live()) > 0 {
			if best == nil || g.end-g.start <= best.end-best.start {
				best = g
			}
		}
	}
	return best
}
