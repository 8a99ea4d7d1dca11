package source

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/lang"
)

// fileDigest is the digest of a file's contents.
func fileDigest(name string) (evidence.Digest, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return evidence.Digest("sha256:" + hex.EncodeToString(h.Sum(nil))), nil
}

// lockNames are covered by the locks digest, in which their comments do not count.
var lockNames = map[string]bool{"go.mod": true, "go.sum": true, "go.work": true, "go.work.sum": true}

// dataDigest covers the files beside the sources that tests can read: all that
// is no Go source in the directory and in the directories below it, except in
// directories of other packages, other modules, vendored code and git's own.
// Below testdata, and below names that the go command ignores, Go files are data
// as well. Left out is what tests hardly ever read (see [inert]): where one does,
// the file is among its reads.
func (m *module) dataDigest(dir string) (evidence.Digest, error) {
	parts := []string{"data/v1"}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != dir && m.foreignDir(name, rel) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) == ".go" && !ignoredDir(rel) || lockNames[rel] || inert(rel) {
			return nil
		}
		sum, err := entryDigest(name, d)
		if err != nil {
			return err
		}
		parts = append(parts, filepath.ToSlash(rel), string(sum))
		return nil
	})
	if err != nil {
		return "", err
	}
	return evidence.DigestParts(parts...), nil
}

// inert tells the files that are about the project and no part of it: prose, our
// configuration, and what begins with a dot.
func inert(rel string) bool {
	return filepath.Ext(rel) == ".md" || rel == "proveto.yaml" || strings.HasPrefix(rel, ".")
}

// foreignDir tells whether a directory below a package is not its data.
func (m *module) foreignDir(name, rel string) bool {
	base := filepath.Base(name)
	if base == ".git" || base == ".hg" || base == ".svn" || base == "vendor" && filepath.Dir(name) == m.dir {
		return true
	}
	if ignoredDir(rel + string(filepath.Separator)) {
		return false
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return false // the walk reports it
	}
	for _, e := range entries {
		if !e.IsDir() && (e.Name() == "go.mod" || filepath.Ext(e.Name()) == ".go") {
			return true
		}
	}
	return false
}

// ignoredDir tells whether a file lies below a directory in which the go command
// sees no packages.
func ignoredDir(rel string) bool {
	parts := strings.Split(rel, string(filepath.Separator))
	for _, p := range parts[:len(parts)-1] {
		if p == "testdata" || strings.HasPrefix(p, "_") || strings.HasPrefix(p, ".") {
			return true
		}
	}
	return false
}

// ignored lists the module's Go files that are in no unit: the go command leaves
// a directory out without a word when its constraints exclude every file.
func (m *module) ignored(units []lang.Unit) ([]lang.Problem, error) {
	used := map[string]bool{}
	for _, u := range units {
		for _, f := range u.Files {
			used[f] = true
		}
	}
	var out []lang.Problem
	err := filepath.WalkDir(m.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		hidden := strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".")
		if d.IsDir() {
			_, err := os.Lstat(filepath.Join(name, "go.mod"))
			if name != m.dir && (hidden || err == nil || base == "testdata" || base == "vendor") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(base) == ".go" && !hidden && !used[m.rel(name)] {
			out = append(out, lang.Problem{File: m.rel(name), Reason: "ignored by build constraints"})
		}
		return nil
	})
	return out, err
}

// entryDigest covers a file's contents. Of a link its text counts and, when it
// leads to a regular file, the contents; of pipes and devices only that they are
// there.
func entryDigest(name string, d fs.DirEntry) (evidence.Digest, error) {
	switch {
	case d.Type().IsRegular():
		return fileDigest(name)
	case d.Type()&fs.ModeSymlink != 0:
		text, err := os.Readlink(name)
		if err != nil {
			return "", err
		}
		parts := []string{"link", text}
		if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
			sum, err := fileDigest(name)
			if err != nil {
				return "", err
			}
			parts = append(parts, string(sum))
		}
		return evidence.DigestParts(parts...), nil
	}
	return evidence.DigestParts("special", d.Type().String()), nil
}
