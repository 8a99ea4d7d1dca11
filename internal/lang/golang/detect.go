package golang

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/proveto/proveto/internal/lang"
)

// Detect lists the modules below root by their go.mod files. Directories that
// the go command ignores (vendor, testdata, names that begin with a dot or an
// underscore) hold no projects. A go.mod that does not parse is a project, too:
// loading it says what is wrong.
func (d *Driver) Detect(root string) ([]lang.Project, error) {
	var out []lang.Project
	var tests []string // directory of each test file
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if path != root && ignored(e.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(e.Name(), "_test.go") {
			tests = append(tests, filepath.Dir(path))
		}
		if e.Name() != "go.mod" || !e.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		out = append(out, lang.Project{
			Language: Language, Dir: dir, Name: modfile.ModulePath(b), Runner: Runner,
			Manifest: strings.TrimPrefix(dir+"/go.mod", "./"),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("detect Go modules: %w", err)
	}
	slices.SortFunc(out, func(a, b lang.Project) int { return strings.Compare(a.Dir, b.Dir) })
	for _, dir := range tests {
		if p := nearest(out, root, dir); p != nil {
			p.TestFiles++
		}
	}
	return out, nil
}

// nearest is the innermost module around a directory, nil when there is none.
func nearest(ps []lang.Project, root, dir string) *lang.Project {
	var best *lang.Project
	for i := range ps {
		p := &ps[i]
		if within(filepath.Join(root, filepath.FromSlash(p.Dir)), dir) && (best == nil || len(p.Dir) > len(best.Dir) || best.Dir == ".") {
			best = p
		}
	}
	return best
}

func ignored(name string) bool {
	return name == "vendor" || name == "testdata" || name == "node_modules" ||
		strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}
