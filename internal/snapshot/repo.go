package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// Repo is a place whose sources can be sealed: a git repository or a plain
// directory.
type Repo struct {
	// ID names the state that we keep of this repository on this machine: a digest
	// of the real path of its common git directory and of its object format. Root
	// commits would not do: an unborn repository has none, a shallow one has others,
	// and two clones on one machine must not share private state. Linked worktrees
	// of one repository share it.
	ID   string `json:"id"`
	Name string `json:"name"` // for people; not unique

	Root      string   `json:"root"`       // of the work tree; the git directory of a bare repository
	GitDir    string   `json:"git_dir"`    // empty: not a git repository
	CommonDir string   `json:"common_dir"` // differs from GitDir in a linked worktree
	Objects   string   `json:"objects"`    // the object directory
	Format    string   `json:"format"`     // object format: sha1 or sha256
	Head      string   `json:"head"`       // commit; empty when unborn or without git
	Branch    string   `json:"branch"`     // empty when detached
	Bare      bool     `json:"bare"`
	Linked    bool     `json:"linked"` // a worktree made by git worktree add
	Shallow   bool     `json:"shallow"`
	Notes     []string `json:"notes,omitempty"`
}

// Git tells a git repository from a plain directory.
func (r Repo) Git() bool { return r.GitDir != "" }

// Locate finds the repository that holds dir: the nearest directory upwards
// with a usable .git, or a bare repository. Without one the directory itself is
// the source, and Git is false. core.worktree of the repository's configuration
// is not followed: what is sealed is what the user pointed at.
func (s *Store) Locate(ctx context.Context, dir string) (Repo, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return Repo{}, fault.Wrap(err, fault.Usage, CodeUnreadable, "%s cannot be opened", dir).Hint("proveto -C DIR")
	}
	st, err := os.Stat(abs)
	if err != nil {
		return Repo{}, fault.Wrap(err, fault.Usage, CodeUnreadable, "%s cannot be opened", dir).Hint("proveto -C DIR")
	}
	if !st.IsDir() {
		return Repo{}, fault.New(fault.Usage, CodeUnreadable, "%s is not a directory", dir).Hint("proveto -C DIR")
	}
	var notes []string
	for at := abs; ; at = filepath.Dir(at) {
		repo, found, err := s.locateAt(ctx, at)
		if err != nil {
			var ge *gitError
			if !errors.As(err, &ge) {
				return Repo{}, err
			}
			notes = append(notes, fmt.Sprintf("%s/.git is not usable: %s", at, err))
		}
		if found && err == nil {
			repo.Notes = notes
			return repo, nil
		}
		if at == "/" || otherDevice(at, filepath.Dir(at)) {
			break
		}
	}
	r := Repo{Root: abs, Name: filepath.Base(abs), Format: "sha1", ID: idOf("dir", abs, "sha1"), Notes: notes}
	return r, nil
}

func idOf(kind, path, format string) string {
	return evidence.DigestParts(kind, path, format).Hex()[:24]
}

func otherDevice(a, b string) bool {
	var x, y syscall.Stat_t
	return syscall.Stat(a, &x) == nil && syscall.Stat(b, &y) == nil && x.Dev != y.Dev
}

// locateAt looks at one directory only. An error from git means that there is
// something that looks like a repository and is none.
func (s *Store) locateAt(ctx context.Context, root string) (Repo, bool, error) {
	gitDir, bare := filepath.Join(root, ".git"), false
	st, err := os.Stat(gitDir)
	switch {
	case err != nil && looksBare(root):
		gitDir, bare = root, true
	case err != nil:
		return Repo{}, false, nil //nolint:nilerr // nothing called .git here
	case !st.IsDir():
		if gitDir, err = readGitFile(gitDir); err != nil {
			return Repo{}, true, err
		}
	case !looksBare(gitDir):
		return Repo{}, false, nil // git, too, walks past such a directory
	}
	if gitDir, err = filepath.EvalSymlinks(gitDir); err != nil {
		return Repo{}, true, &gitError{verb: "rev-parse", cause: err}
	}
	r := Repo{Root: root, GitDir: gitDir, CommonDir: gitDir}
	if r.CommonDir, err = commonDir(gitDir); err != nil {
		return Repo{}, true, &gitError{verb: "rev-parse", cause: err}
	}
	r.Linked = r.CommonDir != r.GitDir
	r.Objects = filepath.Join(r.CommonDir, "objects")
	lines, at, err := s.describe(ctx, gitDir)
	if err != nil {
		return Repo{}, true, err
	}
	r.Format = lines[0]
	r.Bare = bare && filepath.Base(root) != ".git" || lines[1] == "true" && !r.Linked
	if r.Bare {
		r.Root = gitDir
	}
	if shallow, err := os.Stat(filepath.Join(r.CommonDir, "shallow")); err == nil {
		r.Shallow = shallow.Size() > 0
	}
	r.ID = idOf("git", r.CommonDir, r.Format)
	r.Name = nameOf(r.CommonDir)
	if at.commit == "" {
		if at, err = s.head(ctx, r); err != nil {
			return Repo{}, true, err
		}
	}
	r.Head, r.Branch = at.commit, at.branch
	return r, true, nil
}

// describe asks for the object format and whether the repository is bare, in one
// process with where HEAD is when HEAD can be read; else at is empty.
func (s *Store) describe(ctx context.Context, gitDir string) (lines []string, at position, err error) {
	what := []string{"rev-parse", "--show-object-format", "--is-bare-repository"}
	out, code, err := s.git.run(ctx, call{args: append(slices.Clone(what), headArgs...), gitDir: gitDir, answers: []int{128}})
	if err != nil {
		return nil, at, err
	}
	if lines = strings.Fields(string(out)); code == 0 && len(lines) == 5 {
		at, err = positionOf(lines[2:])
		return lines[:2], at, err
	}
	if out, _, err = s.git.run(ctx, call{args: what, gitDir: gitDir}); err != nil {
		return nil, at, err
	}
	if lines = strings.Fields(string(out)); len(lines) != 2 {
		return nil, at, fmt.Errorf("git rev-parse answered %q", out)
	}
	return lines, at, nil
}

// position is where HEAD is.
type position struct {
	commit string        // empty when unborn
	tree   evidence.Tree // of the commit; empty when not asked for, or not readable
	branch string        // empty when detached
}

// headArgs ask for commit, tree and branch of HEAD; they fail when it is unborn.
var headArgs = []string{"HEAD", "HEAD^{tree}", "--symbolic-full-name", "HEAD"}

func positionOf(lines []string) (position, error) {
	tree, err := evidence.ParseTree(lines[1])
	if err != nil {
		return position{}, fmt.Errorf("git rev-parse answered %q: %w", lines, err)
	}
	p := position{commit: lines[0], tree: tree}
	if lines[2] != "HEAD" {
		p.branch = strings.TrimPrefix(lines[2], "refs/heads/")
	}
	return p, nil
}

func looksBare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			// A linked worktree's git directory has HEAD and commondir only.
			if _, err := os.Lstat(filepath.Join(dir, "commondir")); err != nil {
				return false
			}
		}
	}
	return true
}

// readGitFile follows a .git file of a submodule or a linked worktree.
func readGitFile(path string) (string, error) {
	body, err := readSmall(path)
	if err != nil {
		return "", &gitError{verb: "rev-parse", cause: err}
	}
	target, ok := strings.CutPrefix(string(body), "gitdir: ")
	if !ok {
		return "", &gitError{verb: "rev-parse", cause: errors.New("a .git file without gitdir")}
	}
	target = strings.TrimRight(target, "\r\n")
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	return target, nil
}

func commonDir(gitDir string) (string, error) {
	body, err := readSmall(filepath.Join(gitDir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", err
	}
	dir := strings.TrimRight(string(body), "\r\n")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(gitDir, dir)
	}
	return filepath.EvalSymlinks(dir)
}

// readSmall reads a regular file of at most 64 KiB; a pipe or a device would
// make us wait for ever.
func readSmall(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > 64<<10 {
		return nil, fmt.Errorf("%s is not a small regular file", path)
	}
	return os.ReadFile(path)
}

func nameOf(commonDir string) string {
	if filepath.Base(commonDir) == ".git" {
		return filepath.Base(filepath.Dir(commonDir))
	}
	return strings.TrimSuffix(filepath.Base(commonDir), ".git")
}

// head reads HEAD now.
func (s *Store) head(ctx context.Context, r Repo) (at position, err error) {
	if !r.Git() {
		return at, nil
	}
	out, code, err := s.git.run(ctx, call{args: append([]string{"rev-parse"}, headArgs...), gitDir: r.GitDir, answers: []int{128}})
	if err != nil {
		return at, fmt.Errorf("HEAD of %s: %w", r.Name, err)
	}
	if lines := strings.Fields(string(out)); code == 0 && len(lines) == 3 {
		return positionOf(lines)
	}
	out, code, err = s.git.run(ctx, call{args: []string{"rev-parse", "-q", "--verify", "HEAD"}, gitDir: r.GitDir, answers: []int{1}})
	if err != nil {
		return at, fmt.Errorf("HEAD of %s: %w", r.Name, err)
	}
	if code == 0 {
		at.commit = strings.TrimSpace(string(out))
	}
	out, code, err = s.git.run(ctx, call{args: []string{"symbolic-ref", "-q", "HEAD"}, gitDir: r.GitDir, answers: []int{1}})
	if err != nil {
		return at, fmt.Errorf("branch of %s: %w", r.Name, err)
	}
	if code == 0 {
		at.branch = strings.TrimPrefix(strings.TrimSpace(string(out)), "refs/heads/")
	}
	return at, nil
}
