package flows

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/snapshot"
)

// ground is what a run stands on: a base commit, and what it says about policy
// and principals. Outside a repository there is only the built-in.
type ground struct {
	repo   snapshot.Repo
	base   snapshot.Place
	target string
	policy policy.Policy
	roster identity.Roster
	gates  map[string]evidence.Digest
}

// maxPolicyFile is the most that is read of a file of the base commit.
const maxPolicyFile = 1 << 20

// ground reads what a run stands on. An empty policy is the repository's default;
// an empty base HEAD; an empty target the branch that is checked out.
func (f *Flows) ground(ctx context.Context, name, base, target string) (ground, error) {
	g := ground{}
	inside := f.insideRepository()
	if !inside && name != policy.Manual {
		return g, fault.New(fault.Refused, "base_unresolved", "%s is in no git repository, so a run has nothing to stand on", f.app.Where("")).
			Hint("git init").Hint("proveto flow init --task TEXT --policy manual")
	}
	files := map[string]snapshot.FileAt{}
	if inside {
		if err := f.findBase(ctx, &g, name, base, target, files); err != nil {
			return g, err
		}
	}
	if err := f.findPolicy(&g, name, files); err != nil {
		return g, err
	}
	if err := f.findRoster(ctx, &g, files); err != nil {
		return g, err
	}
	if len(g.policy.Notify) > 0 {
		f.app.Warn("notify", fmt.Sprintf("policy %q wants notices sent: a command sends none; proveto flow watch tells of every change as it comes", g.policy.Name))
	}
	var err error
	g.gates, err = f.gateDigests(g.policy)
	return g, err
}

// insideRepository tells whether the directory, or one above it, looks like a git
// repository, without starting git.
func (f *Flows) insideRepository() bool {
	dir, err := filepath.Abs(f.app.Where(""))
	for err == nil {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err == nil {
			if _, err := os.Lstat(filepath.Join(dir, "objects")); err == nil {
				return true // bare
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
	return false
}

// repoHere names the repository of the working directory; empty outside one.
func (f *Flows) repoHere(ctx context.Context) string {
	if !f.insideRepository() {
		return ""
	}
	snaps, err := f.app.Snapshots(ctx)
	if err != nil {
		return ""
	}
	repo, err := snaps.Locate(ctx, f.app.Where(""))
	if err != nil {
		return ""
	}
	return repo.ID
}

func (f *Flows) findBase(ctx context.Context, g *ground, name, base, target string, files map[string]snapshot.FileAt) error {
	snaps, err := f.app.Snapshots(ctx)
	if err != nil {
		return err
	}
	if g.repo, err = snaps.Locate(ctx, f.app.Where("")); err != nil {
		return err
	}
	if base == "" && g.repo.Head == "" && name == policy.Manual {
		return nil // an unborn branch has no base, and this policy needs none
	}
	if base == "" {
		base = "HEAD"
	}
	if g.base, err = snaps.Resolve(ctx, g.repo, base); err != nil {
		return err
	}
	switch {
	case target != "":
		p, err := snaps.Resolve(ctx, g.repo, target)
		if err != nil {
			return err
		}
		if g.target = p.Ref; g.target == "" {
			return fault.New(fault.Usage, "usage", "--target %.80q is a commit, not a branch", target).Hint("git branch --list")
		}
	case g.repo.Branch != "":
		g.target = "refs/heads/" + g.repo.Branch
	}
	got, err := snaps.FilesAt(ctx, g.repo, g.base.Commit, maxPolicyFile, policy.FileName, identity.PrincipalsFile, identity.SignersFile)
	for name, file := range got {
		files[name] = file
	}
	return err
}

// findPolicy takes the policy of the base commit, and what a file that is not
// committed tightens.
func (f *Flows) findPolicy(g *ground, name string, files map[string]snapshot.FileAt) error {
	set := policy.Builtin()
	var err error
	if file, ok := files[policy.FileName]; ok {
		if set, err = policy.Parse(file.Body); err != nil {
			return err
		}
	}
	if g.repo.Root != "" && !g.repo.Bare {
		text, err := readBelow(g.repo.Root, policy.LocalFileName)
		if err != nil {
			return err
		}
		if text != nil {
			if set, err = set.Overlay(text); err != nil {
				return err
			}
		}
	}
	if name == "" {
		name = policy.Default
	}
	g.policy, err = set.Named(name)
	return err
}

// readBelow reads a small file below a directory without leaving it; nil when it
// is not there.
func readBelow(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "io", "open %s", dir)
	}
	defer root.Close() // was only read
	b, err := root.ReadFile(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err == nil && len(b) > maxPolicyFile {
		return nil, fault.New(fault.Usage, "too_large", "%s has more than %d bytes", filepath.Join(dir, name), maxPolicyFile)
	}
	return b, err
}

func (f *Flows) findRoster(ctx context.Context, g *ground, files map[string]snapshot.FileAt) error {
	principals, ok := files[identity.PrincipalsFile]
	if !ok {
		keys, err := f.app.Keys(ctx)
		if err != nil {
			return err
		}
		g.roster = identity.LocalRoster(keys.Local)
		return nil
	}
	var err error
	g.roster, err = identity.ParseRoster(files[identity.SignersFile].Body, principals.Body)
	return err
}

// opened is the fact that pins the ground.
func (g ground) opened(now time.Time) (flow.Opened, error) {
	o := flow.Opened{
		Repo: g.repo.ID, Base: flow.Base{Commit: g.base.Commit, Tree: g.base.Tree}, Target: g.target, Policy: g.policy.Name, Enforced: g.roster.Enforced,
		Holders: g.roster.Holders(),
	}
	var err error
	if o.PolicyBody, err = evidence.Canonical(g.policy); err != nil {
		return o, err
	}
	if o.PolicyDigest, err = g.policy.Digest(); err != nil {
		return o, err
	}
	if o.Roster, err = evidence.Canonical(g.roster); err != nil {
		return o, err
	}
	if o.RosterDigest, err = g.roster.Digest(); err != nil {
		return o, err
	}
	if ttl := g.policy.Limits.RunTTL; ttl > 0 {
		o.Expires = now.Add(ttl).UTC()
	}
	return o, nil
}

// gateDigests are today's digests of the gates that the stages of a policy name.
func (f *Flows) gateDigests(p policy.Policy) (map[string]evidence.Digest, error) {
	out := map[string]evidence.Digest{}
	for _, s := range p.Stages {
		for _, name := range s.Gates {
			d, err := p.GateDigest(name, f.tools()...)
			if err != nil {
				return nil, err
			}
			out[name] = d
		}
	}
	return out, nil
}

// tools name the versions on which the answer of a gate depends: ours, and those
// of the languages.
func (f *Flows) tools() []string {
	out := []string{f.app.Version}
	for _, d := range f.app.Drivers {
		print, err := d.Fingerprint()
		if err != nil {
			print = d.Language() + " is not here"
		}
		out = append(out, print)
	}
	return out
}
