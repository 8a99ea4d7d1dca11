package golang

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/proveto/proveto/internal/lang"
)

// TestFile implements [lang.Driver].
func (d *Driver) TestFile(path string) bool { return strings.HasSuffix(path, "_test.go") }

// TestData implements [lang.Driver]. The go command leaves directories named
// testdata to the tests of the directory that holds them.
func (d *Driver) TestData(name string) (dir string, ok bool) {
	parts := strings.Split(name, "/")
	i := slices.Index(parts[:len(parts)-1], "testdata")
	if i < 0 {
		return "", false
	}
	return path.Join(".", path.Join(parts[:i]...)), true
}

// Detect lists the modules below root by their go.mod files. Directories that
// the go command ignores (vendor, testdata, names that begin with a dot or an
// underscore) hold no projects. A go.mod that does not parse is a project, too:
// loading it says what is wrong.
func (d *Driver) Detect(root string) ([]lang.Project, error) {
	var out []lang.Project
	tests := map[string]int{} // by directory
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
		if d.TestFile(path) {
			tests[filepath.Dir(path)]++
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
	for dir, n := range tests {
		// A directory belongs to the innermost module above it.
		best := -1
		for i := range out {
			mod := filepath.Join(root, filepath.FromSlash(out[i].Dir))
			if within(mod, dir) && (best < 0 || len(out[i].Dir) > len(out[best].Dir) || out[best].Dir == ".") {
				best = i
			}
		}
		if best >= 0 {
			out[best].TestFiles += n
		}
	}
	slices.SortFunc(out, func(a, b lang.Project) int { return strings.Compare(a.Dir, b.Dir) })
	return out, nil
}

func ignored(name string) bool {
	return name == "vendor" || name == "testdata" || name == "node_modules" ||
		strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}
