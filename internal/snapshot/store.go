package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/late"
	"github.com/proveto/proveto/internal/wholefile"
)

// The codes of this package.
const (
	CodeToolMissing    fault.Code = "tool_missing"
	CodeBaseUnresolved fault.Code = "base_unresolved"   // a revision names no commit
	CodeUnreadable     fault.Code = "source_unreadable" // a file or a repository cannot be read
	CodeBadPath        fault.Code = "bad_path"          // a tree holds a name that cannot be checked out safely
	CodePathCollision  fault.Code = "path_collision"    // two names that some file systems cannot tell apart
	CodeObjectMissing  fault.Code = "object_missing"    // a tree or a blob is gone from the object stores
	CodeNoSuchFile     fault.Code = "no_such_file"
	CodeNoRepository   fault.Code = "no_repository" // the directory is not a git repository
	CodeAnchorMoved    fault.Code = "anchor_moved"
	CodeAnchorMissing  fault.Code = "anchor_missing"
	CodeUnknownRepo    fault.Code = "unknown_repository"
	CodeNotClean       fault.Code = "checkout_not_clean"
)

// keepRefs is where our own store names the sealed trees, so that their objects
// stay.
const keepRefs = "refs/proveto/snap/"

// attributes of our own git directories outrank every .gitattributes file, so
// that bytes are sealed, checked out, compared and merged as they are: what is
// binary is told by the bytes alone, and no driver merges.
const attributes = "* -text -crlf -eol -ident -filter !working-tree-encoding !diff !merge !conflict-marker-size\n"

// Config says where things are kept.
type Config struct {
	State    string        // object stores and private indexes, below snapshot/
	Cache    string        // checkouts, below checkouts/; deletable at any time
	Git      string        // the git executable; empty: the one on PATH
	Deadline time.Duration // of one git process; zero: DefaultDeadline
}

// Store holds the object stores of all repositories of this machine. It is safe
// for use by several goroutines and several processes.
type Store struct {
	git   *git
	state string
	cache string
}

// Open checks git and makes the directories. Without a usable git the error has
// code tool_missing.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.State == "" || c.Cache == "" {
		return nil, fault.New(fault.Internal, "internal", "snapshot needs a state and a cache directory")
	}
	s := &Store{}
	for _, d := range []struct {
		to         *string
		base, name string
	}{{&s.state, c.State, "snapshot"}, {&s.cache, c.Cache, "checkouts"}} {
		dir, err := filepath.Abs(filepath.Join(d.base, d.name))
		if err != nil {
			return nil, fmt.Errorf("absolute path of %s: %w", d.base, err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fault.Wrap(err, fault.Internal, "io", "make the snapshot directory %s", dir).Hint("proveto --state DIR")
		}
		if *d.to, err = filepath.EvalSymlinks(dir); err != nil {
			return nil, fmt.Errorf("resolve the snapshot directory: %w", err)
		}
	}
	var err error
	if s.git, err = findGit(ctx, c.Git, c.Deadline, filepath.Join(s.state, "git-seen")); err != nil {
		return nil, err
	}
	return s, nil
}

// Lookup finds a repository that was sealed before by its id; code
// unknown_repository when there is none.
func (s *Store) Lookup(id string) (Repo, error) {
	if !repoID().MatchString(id) {
		return Repo{}, fault.New(fault.Usage, "bad_id", "%.80q is not a repository id", id)
	}
	o, err := readOrigin(filepath.Join(s.state, id))
	if errors.Is(err, fs.ErrNotExist) {
		return Repo{}, fault.New(fault.NotFound, CodeUnknownRepo, "no snapshot was taken of repository %s on this machine", id)
	}
	return o.Repo, err
}

// Remember keeps where a repository is, so that [Store.Lookup] finds it from
// anywhere; sealing does the same.
func (s *Store) Remember(ctx context.Context, repo Repo) error {
	_, err := s.open(ctx, repo)
	return err
}

var repoID = late.Regexp(`^[0-9a-f]{24}$`)

// vault is the part of a Store that belongs to one repository: a bare git
// directory with the objects that are only ours, and private indexes.
type vault struct {
	s       *Store
	repo    Repo
	dir     string
	git     string   // our bare git directory
	objects []string // object directories of the user's repositories, read only
}

// origin is stored beside a vault, so that it can be used without its
// repository being located again.
type origin struct {
	Repo    Repo     `json:"repo"`
	Objects []string `json:"objects"`
}

func readOrigin(dir string) (origin, error) {
	var o origin
	body, err := os.ReadFile(filepath.Join(dir, "origin.json"))
	if err != nil {
		return o, fmt.Errorf("read the origin of a snapshot store: %w", err)
	}
	if err := json.Unmarshal(body, &o); err != nil {
		return o, fmt.Errorf("parse the origin of a snapshot store: %w", err)
	}
	return o, nil
}

// open finds or makes the vault of a repository.
func (s *Store) open(ctx context.Context, repo Repo) (_ *vault, err error) {
	if !repoID().MatchString(repo.ID) {
		return nil, fault.New(fault.Usage, "bad_id", "%.80q is not a repository id", repo.ID)
	}
	v := &vault{s: s, repo: repo, dir: filepath.Join(s.state, repo.ID)}
	v.git = filepath.Join(v.dir, "store.git")
	old, err := readOrigin(v.dir)
	if err == nil {
		v.objects = old.Objects
	}
	if !v.learn(repo.Objects) && err == nil && same(old.Repo, repo) && v.attributed() {
		return v, nil
	}
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the store of %s: %w", repo.Name, err)
	}
	held, err := lock(ctx, filepath.Join(v.dir, "lock"), syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock(held)) }()
	if err := v.init(ctx, held); err != nil {
		return nil, fmt.Errorf("make the store of %s: %w", repo.Name, err)
	}
	return v, v.remember()
}

// same tells whether two descriptions name the same place; HEAD may differ.
func same(a, b Repo) bool {
	return a.ID == b.ID && a.Root == b.Root && a.GitDir == b.GitDir && a.CommonDir == b.CommonDir &&
		a.Objects == b.Objects && a.Format == b.Format && a.Bare == b.Bare && a.Shallow == b.Shallow
}

// init makes the git directory beside its place and moves it there whole.
func (v *vault) init(ctx context.Context, held *os.File) error {
	if _, err := os.Stat(v.git); err == nil {
		if v.attributed() {
			return nil
		}
		return writeFile(v.attributesFile(), []byte(attributes))
	}
	fresh := v.git + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if _, _, err := v.s.git.run(ctx, call{
		args: []string{"init", "-q", "--bare", "--template=", "--object-format=" + v.repo.Format, "--", fresh},
		dir:  v.dir, held: []*os.File{held},
	}); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(fresh, "info"), 0o700); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(fresh, "info", "attributes"), []byte(attributes)); err != nil {
		return err
	}
	return os.Rename(fresh, v.git)
}

func (v *vault) attributesFile() string { return filepath.Join(v.git, "info", "attributes") }

// attributed tells whether our git directory has the attributes of today; an
// older version had others.
func (v *vault) attributed() bool {
	raw, err := os.ReadFile(v.attributesFile())
	return err == nil && string(raw) == attributes
}

// learn adds an object directory and tells whether it was new.
func (v *vault) learn(objects string) bool {
	if objects == "" || slices.Contains(v.objects, objects) {
		return false
	}
	v.objects = append(v.objects, objects)
	return true
}

// remember stores where the objects are.
func (v *vault) remember() error {
	body, err := json.MarshalIndent(origin{Repo: v.repo, Objects: v.objects}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the origin of a snapshot store: %w", err)
	}
	return writeFile(filepath.Join(v.dir, "origin.json"), append(body, '\n'))
}

// shared keeps gc away while objects are written or read.
func (v *vault) shared(ctx context.Context) (*os.File, error) {
	return lock(ctx, filepath.Join(v.dir, "objects.lock"), syscall.LOCK_SH)
}

// read runs git on our store with the user's objects in sight.
func (v *vault) read(ctx context.Context, args ...string) ([]byte, error) {
	out, _, err := v.s.git.run(ctx, call{args: args, gitDir: v.git, objects: v.readable()})
	return out, err
}

// readable lists the object directories that exist today.
func (v *vault) readable() []string {
	out := make([]string, 0, len(v.objects))
	for _, d := range v.objects {
		if st, err := os.Stat(d); err == nil && st.IsDir() {
			out = append(out, d)
		}
	}
	return out
}

// keep names a tree in our store, or marks it as used again. The reference is
// written as a file: git update-ref would leave a lock when it is killed, and
// nobody could tell it from that of a running one.
func (v *vault) keep(tree evidence.Tree) error {
	ref := v.ref(tree)
	now := time.Now()
	if err := os.Chtimes(ref, now, now); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(ref), 0o700); err != nil {
		return fmt.Errorf("keep tree %s: %w", tree, err)
	}
	return writeFile(ref, []byte(tree+"\n"))
}

// ref is the file of the reference that keeps a tree.
func (v *vault) ref(tree evidence.Tree) string {
	return filepath.Join(v.git, filepath.FromSlash(keepRefs), string(tree))
}

// writeFile replaces a file as a whole.
func writeFile(path string, body []byte) error {
	if err := wholefile.Write(path, body, 0o600, true); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// within tells whether path is dir or below it; both absolute and clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
