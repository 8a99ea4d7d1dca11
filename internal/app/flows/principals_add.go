package flows

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/app/gates"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/view"
	"github.com/proveto/proveto/internal/wholefile"
)

// AddOptions are a principal as the user gives it. Without kind, roles, rights and
// operator it is one who is there already and gets another key.
type AddOptions struct {
	Name, Kind, Operator string
	Roles, Rights        []string
	Key                  string // file, or line; one of the three
	FromGit, Generate    bool
	DryRun               bool
}

// AddPrincipal writes a principal and their key into the files of the working
// copy, for the user to commit: a run counts those of its base.
func (f *Flows) AddPrincipal(ctx context.Context, o AddOptions) (*view.PrincipalAdded, error) {
	root, err := f.workTree(ctx)
	if err != nil {
		return nil, err
	}
	signers, err := readBelow(root, identity.SignersFile)
	if err != nil {
		return nil, err
	}
	principals, err := readBelow(root, identity.PrincipalsFile)
	if err != nil {
		return nil, err
	}
	p, err := o.principal(principals)
	if err != nil {
		return nil, err
	}
	// Everything but the key is asked first: none is made for nothing.
	if _, _, err := identity.AddPrincipal(signers, principals, p, ""); err != nil {
		return nil, err
	}
	v := &view.PrincipalAdded{Name: p.Name, Files: []view.ChangedFile{}, Written: !o.DryRun}
	key, err := f.newKey(ctx, o, p, v)
	if err != nil {
		return nil, err
	}
	newSigners, newPrincipals, err := identity.AddPrincipal(signers, principals, p, key)
	if err != nil {
		return nil, err
	}
	files := []rewritten{{identity.SignersFile, signers, newSigners}, {identity.PrincipalsFile, principals, newPrincipals}}
	for _, w := range files {
		if string(w.old) != string(w.text) {
			v.Files = append(v.Files, view.ChangedFile{Path: w.name, Diff: gates.DiffText(w.name, w.old, w.text)})
		}
	}
	switch {
	case len(v.Files) == 0:
		v.Text, v.Written = fmt.Sprintf("principal %s is there already; nothing changes", p.Name), false
	case o.DryRun:
		v.Text = fmt.Sprintf("would add principal %s; nothing is written", p.Name)
	default:
		for _, w := range files {
			if err := writeBelow(root, w); err != nil {
				return nil, err
			}
		}
		v.Text = fmt.Sprintf("principal %s is in the working copy; commit .proveto/, for a run counts what its base commit says", p.Name)
	}
	f.rosterWarnings(newSigners, newPrincipals)
	return v, nil
}

// workTree is the root of the repository of the working directory.
func (f *Flows) workTree(ctx context.Context) (string, error) {
	if !f.insideRepository() {
		return "", fault.New(fault.Refused, "base_unresolved", "%s is in no git repository, so nobody would read who is who", f.app.Where("")).Hint("git init")
	}
	snaps, err := f.app.Snapshots(ctx)
	if err != nil {
		return "", err
	}
	repo, err := snaps.Locate(ctx, f.app.Where(""))
	if err != nil {
		return "", err
	}
	if repo.Bare || repo.Root == "" {
		return "", fault.New(fault.Refused, "base_unresolved", "%s has no working copy to write into", f.app.Where("")).Hint("git worktree list")
	}
	return repo.Root, nil
}

// principal is the one that the options describe.
func (o AddOptions) principal(text []byte) (identity.Principal, error) {
	p := identity.Principal{Name: o.Name, Kind: identity.PrincipalKind(o.Kind), Roles: o.Roles, Rights: o.Rights, Operator: o.Operator}
	if o.Kind == "" && len(o.Roles)+len(o.Rights) == 0 && o.Operator == "" && len(text) > 0 {
		all, err := identity.ParsePrincipals(text)
		if err != nil {
			return p, err
		}
		for _, old := range all {
			if old.Name == o.Name {
				p = old
			}
		}
	}
	if p.Kind == "" {
		p.Kind = identity.KindHuman
	}
	given := 0
	for _, is := range []bool{o.Key != "", o.FromGit, o.Generate} {
		if is {
			given++
		}
	}
	switch {
	case p.Kind == identity.KindAgent && given > 0:
		return p, fault.New(fault.Usage, "usage", "an agent holds no key: it acts by the capability of its launch").Hint("proveto flow principals add %s --kind agent --operator NAME", o.Name)
	case p.Kind != identity.KindAgent && given != 1:
		return p, fault.New(fault.Usage, "usage", "a principal who is no agent needs one key: --key, --from-git or --generate").Hint("proveto flow principals add %s --from-git", o.Name)
	}
	return p, nil
}

// newKey finds or makes the key.
func (f *Flows) newKey(ctx context.Context, o AddOptions, p identity.Principal, v *view.PrincipalAdded) (key string, err error) {
	switch {
	case o.Key != "":
		key, err = identity.ReadPublicKey(o.Key)
	case o.FromGit:
		var git string
		if git, err = f.gitKey(ctx); err == nil && git == "" {
			err = fault.New(fault.NotFound, identity.CodeNotFound, "git has no user.signingkey here").Hint("git config gpg.format ssh").Hint("git config user.signingkey FILE")
		}
		if err == nil {
			key, err = identity.ReadPublicKey(git)
		}
	case o.Generate && o.DryRun:
		v.KeyFile = identity.GeneratedFile(f.app.Paths.State, p.Name)
		return "", nil
	case o.Generate:
		v.KeyFile, key, err = identity.Generate(f.app.Paths.State, p.Name)
	}
	if err != nil || key == "" {
		return "", err
	}
	v.Key, err = identity.Fingerprint(key)
	return key, err
}

// rewritten is a file of the working copy as it was read, and as it shall be.
type rewritten struct {
	name      string
	old, text []byte
}

// writeBelow writes a file of the working copy, in a directory that is one and in
// place of a file that is one, unless it changed since it was read.
func writeBelow(dir string, w rewritten) error {
	if string(w.old) == string(w.text) {
		return nil
	}
	full := filepath.Join(dir, w.name)
	for _, at := range []string{filepath.Dir(full), full} {
		fi, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fault.Wrap(err, fault.Internal, "io", "write %s", full)
		case at == full && !fi.Mode().IsRegular(), at != full && !fi.IsDir():
			return fault.New(fault.Refused, "io", "%s is a link or something else; nothing is written there", at).Hint("git status")
		}
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil { //nolint:gosec // of the user's checkout, as git makes directories
		return fault.Wrap(err, fault.Internal, "io", "write %s", full)
	}
	now, err := readBelow(dir, w.name)
	if err != nil {
		return err
	}
	if string(now) != string(w.old) {
		return fault.New(fault.Conflict, "conflict", "%s changed in between", full).Hint("git status")
	}
	if err := wholefile.Write(full, w.text, 0o644, true); err != nil {
		return fault.Wrap(err, fault.Internal, "io", "write %s", full)
	}
	return nil
}

// rosterWarnings says what two files of principals make hard.
func (f *Flows) rosterWarnings(signers, principals []byte) {
	r, err := identity.ParseRoster(signers, principals)
	if err != nil {
		return // was read before
	}
	for _, w := range r.Warnings() {
		f.app.Warn("principals", w)
	}
	var none []string
	for _, role := range identity.Roles() {
		if len(r.Holders()[role]) == 0 {
			none = append(none, role)
		}
	}
	if len(none) > 0 {
		f.app.Warn("principals", "nobody holds the role "+strings.Join(none, ", "))
	}
	if !slices.ContainsFunc(r.Principals, func(p identity.Principal) bool { return p.May(identity.RightPrincipals) }) {
		f.app.Warn("principals", "nobody has the right "+identity.RightPrincipals+", so nobody can revoke a key")
	}
}

// uncommitted says that the files of the working copy are not those of the base.
func (f *Flows) uncommitted(ctx context.Context, g ground) (string, error) {
	snaps, err := f.app.Snapshots(ctx)
	if err != nil {
		return "", err
	}
	files, err := snaps.FilesAt(ctx, g.repo, g.base.Commit, maxPolicyFile, identity.PrincipalsFile, identity.SignersFile)
	if err != nil {
		return "", err
	}
	for _, name := range []string{identity.PrincipalsFile, identity.SignersFile} {
		text, err := readBelow(g.repo.Root, name)
		if err != nil {
			return "", err
		}
		if string(text) != string(files[name].Body) {
			return name + " of the working copy says something else; what is committed counts", nil
		}
	}
	return "", nil
}
