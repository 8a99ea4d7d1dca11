package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// CodeTooLarge says that a text is longer than its kind may be.
const CodeTooLarge fault.Code = "too_large"

// Place is a commit of the user's repository that a revision named.
type Place struct {
	Commit string
	Tree   evidence.Tree // as committed: submodules are references
	Ref    string        // full name (refs/heads/main) when the revision named one, through HEAD too; else empty
}

// Resolve finds the commit that a revision names now, in one git process; code
// base_unresolved when it names none, as HEAD does before the first commit.
func (s *Store) Resolve(ctx context.Context, repo Repo, rev string) (Place, error) {
	if err := nameable(repo, rev); err != nil {
		return Place{}, err
	}
	out, _, err := s.git.run(ctx, call{
		args: []string{"rev-parse", rev + "^{commit}", rev + "^{tree}", "--symbolic-full-name", rev}, gitDir: repo.GitDir,
	})
	if err != nil {
		if ctx.Err() != nil {
			return Place{}, err
		}
		e := unresolved(repo, rev)
		e.Err = err
		return Place{}, e
	}
	// A range or a parent list would answer with other lines, or marks before them.
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) < 2 || len(lines) > 3 || !objectID(lines[0]) || !objectID(lines[1]) {
		return Place{}, unresolved(repo, rev)
	}
	p := Place{Commit: lines[0], Tree: evidence.Tree(lines[1])}
	if len(lines) == 3 && strings.HasPrefix(lines[2], "refs/") {
		p.Ref = lines[2]
	}
	return p, nil
}

// nameable refuses what cannot be a revision before git sees it.
func nameable(repo Repo, rev string) error {
	if !repo.Git() {
		return fault.New(fault.Refused, CodeNoRepository, "%s is not a git repository and has no revision %q", repo.Root, rev)
	}
	if rev == "" || strings.HasPrefix(rev, "-") || strings.ContainsAny(rev, "\x00\n") {
		return unresolved(repo, rev)
	}
	return nil
}

func unresolved(repo Repo, rev string) *fault.Error {
	return fault.New(fault.NotFound, CodeBaseUnresolved, "%q names no commit of %s", rev, repo.Name).
		Hint("git -C %s log --oneline --all", repo.Root)
}

// Person is who a commit says made it.
type Person struct {
	Name  string
	Email string
}

// Identity is what the user told git about himself; what was not told is empty.
type Identity struct {
	Person
	SigningKey string // user.signingKey as written: a file, key::…, or a name of GnuPG
	KeyFormat  string // gpg.format as written; empty is openpgp
}

// identityKeys are the settings that Identity reads.
const identityKeys = `^(user\.(name|email|signingkey)|gpg\.format)$`

// Identity reads the user's git configuration, that of the machine, of the user
// and of the repository, as git does. Variables of the environment (GIT_…) have
// no say. Only values are read: nothing that a configuration names is executed
// or opened, but for files that it includes.
func (s *Store) Identity(ctx context.Context, repo Repo) (Identity, error) {
	out, _, err := s.git.run(ctx, call{
		args: []string{"config", "-z", "--includes", "--get-regexp", identityKeys}, gitDir: repo.GitDir, dir: "/", asUser: true, answers: []int{1},
	})
	if err != nil {
		return Identity{}, fault.Wrap(err, fault.Unmeasured, CodeUnreadable, "the git configuration of %s cannot be read", repo.Name).
			Hint("git -C %s config --list --show-origin", repo.Root)
	}
	var id Identity
	for _, rec := range split(out) { // the last one counts
		key, value, _ := strings.Cut(rec, "\n")
		switch key {
		case "user.name":
			id.Name = value
		case "user.email":
			id.Email = value
		case "user.signingkey":
			id.SigningKey = value
		case "gpg.format":
			id.KeyFormat = value
		}
	}
	return id, nil
}

// FileAt is a file as it is in a commit.
type FileAt struct {
	Mode Mode
	Body []byte // of a symlink: its target
}

// FilesAt reads files of a commit or a tree of the user's repository, none
// longer than limit bytes (code too_large), in two git processes for any number
// of paths, in one when there is none of them. A path that is no file there is
// not in the result. A symlink is not followed.
func (s *Store) FilesAt(ctx context.Context, repo Repo, id string, limit int64, paths ...string) (map[string]FileAt, error) {
	if !objectID(id) {
		return nil, fault.New(fault.Usage, "bad_id", "%.80q is not the id of a commit", id)
	}
	if !repo.Git() {
		return nil, fault.New(fault.Refused, CodeNoRepository, "%s is not a git repository", repo.Root)
	}
	want := map[string]bool{}
	args := []string{"ls-tree", "-l", "-z", "--full-tree", id, "--"}
	for _, p := range paths {
		if inside(p) {
			want[p] = true
			args = append(args, p)
		}
	}
	out := map[string]FileAt{}
	if len(want) == 0 {
		return out, nil
	}
	raw, _, err := s.git.run(ctx, call{args: args, gitDir: repo.GitDir})
	if err != nil {
		return nil, missingFrom(err, repo, "read commit %s", id)
	}
	var names []string
	var asked bytes.Buffer
	for _, rec := range split(raw) {
		head, p, tab := strings.Cut(rec, "\t")
		f := strings.Fields(head) // mode, type, id, size
		if !tab || len(f) != 4 {
			return nil, fmt.Errorf("git's listing does not parse at %.80q", rec)
		}
		if !want[p] || f[1] != "blob" {
			continue
		}
		n, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil { // git has no size to tell
			return nil, missingFrom(&gitError{verb: "ls-tree", cause: errNoObject, stderr: "missing " + f[2]}, repo, "read %q of commit %s", p, id)
		}
		if n > limit {
			return nil, fault.New(fault.Usage, CodeTooLarge, "%q has %s bytes at %s, more than %d", p, f[3], id, limit)
		}
		out[p] = FileAt{Mode: Mode(f[0])}
		names = append(names, p)
		asked.WriteString(f[2] + "\n")
	}
	if len(names) == 0 {
		return out, nil
	}
	raw, _, err = s.git.run(ctx, call{args: []string{"cat-file", "--batch"}, gitDir: repo.GitDir, stdin: asked.Bytes()})
	if err != nil {
		return nil, missingFrom(err, repo, "read files of commit %s", id)
	}
	from := bufio.NewReader(bytes.NewReader(raw))
	for _, p := range names {
		size, err := answer(from)
		if err != nil {
			return nil, missingFrom(err, repo, "read %q of commit %s", p, id)
		}
		body := make([]byte, size+1) // a line end follows
		if _, err := io.ReadFull(from, body); err != nil {
			return nil, fmt.Errorf("read %q of commit %s: %w", p, id, err)
		}
		out[p] = FileAt{Mode: out[p].Mode, Body: body[:size]}
	}
	return out, nil
}

// inside tells whether a tree could hold the path. Git stops at one that leaves it.
func inside(p string) bool {
	return p != "" && !strings.ContainsRune(p, 0) && path.Clean("/"+p) == "/"+p
}

// answer reads the first line that cat-file --batch says about one blob: its
// size. A missing one is a gitError that says so.
func answer(from *bufio.Reader) (int64, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("git cat-file: %w", err)
	}
	f := strings.Fields(line)
	if len(f) == 2 && f[1] == "missing" {
		return 0, &gitError{verb: "cat-file", cause: errNoObject, stderr: strings.TrimSpace(line)}
	}
	if len(f) != 3 || f[1] != "blob" {
		return 0, fmt.Errorf("git cat-file answered %.80q", line)
	}
	return strconv.ParseInt(f[2], 10, 64)
}
