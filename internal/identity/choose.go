package identity

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/strictyaml"
)

// Source is where a key came from.
type Source string

// The sources, in the order in which they are asked.
const (
	FromFlag      Source = "--key"
	FromVariable  Source = "PROVETO_KEY"
	FromGit       Source = "git user.signingkey"
	FromAgent     Source = "ssh-agent"
	FromGenerated Source = "generated key"
)

// ChooseOptions are what the choice of a key depends on. Zero values mean that
// there is no such thing.
type ChooseOptions struct {
	Roster  Roster
	Revoked Revocations
	At      time.Time // of the act, by the ledger

	Actor       string // --actor: a principal, or a role; empty for whom the key speaks
	Key         string // --key: a file, or SHA256:…
	VariableKey string // PROVETO_KEY, likewise
	// GitKeyFunc is git's user.signingkey, asked for only when it matters; empty
	// when it is not set.
	GitKeyFunc func(context.Context) (string, error)
	Agent      string // SSH_AUTH_SOCK
	Generated  Person // the key of this machine
	// PassphraseFunc asks for the passphrase of a key file; nil without a terminal.
	PassphraseFunc func(ctx context.Context, file string) ([]byte, error)
}

// Choice is who acts, and the key that proves it.
type Choice struct {
	Principal Principal
	Role      string // when --actor named the role
	Key       Key    // never zero
	From      Source
}

// Who is the choice as records name it.
func (c Choice) Who() Who {
	return Who{Principal: c.Principal.Name, Operator: c.Principal.Operator, Key: c.Key.Fingerprint()}
}

// Choose finds who acts and with which key. A key that is named by --key or
// PROVETO_KEY is the one; otherwise the first that speaks for the actor. Without
// principals in the repository that is the generated key, and nothing else is
// looked at.
//
// Errors: not_found for an actor who is neither principal nor role, and for a key
// that is not there; ambiguous_actor for a role that several principals of the
// caller hold; not_authenticated when no key speaks for the actor; expired,
// revoked, key_locked.
func Choose(ctx context.Context, o ChooseOptions) (Choice, error) {
	wanted, role, err := o.wanted()
	if err != nil {
		return Choice{}, err
	}
	if o.Key != "" || o.VariableKey != "" {
		c, err := o.named(ctx)
		if err != nil {
			return Choice{}, err
		}
		p, err := o.speaks(c)
		if err != nil {
			return Choice{}, err
		}
		if len(wanted) > 0 && !slices.Contains(wanted, p.Name) {
			return Choice{}, fault.New(fault.Refused, CodeNotAuthenticated, "key %s of %s speaks for %s, not for %s",
				ssh.FingerprintSHA256(c.pub), c.from, p.Name, o.Actor).Hint("proveto flow principals list")
		}
		return c.choice(ctx, p, role)
	}
	return o.first(ctx, wanted, role)
}

func (c candidate) choice(ctx context.Context, p Principal, role string) (Choice, error) {
	k, err := c.openFunc(ctx)
	if err != nil {
		return Choice{}, err
	}
	if print := ssh.FingerprintSHA256(c.pub); k.Fingerprint() != print { // a public half that lay beside another key
		return Choice{}, fault.New(fault.Refused, CodeKeyBad, "%s: the private half of key %s is of key %s", c.from, print, k.Fingerprint())
	}
	return Choice{Principal: p, Role: role, Key: k, From: c.from}, nil
}

// wanted lists the principals that --actor can mean, none for all, and the role
// when it named one.
func (o *ChooseOptions) wanted() (names []string, role string, err error) {
	if o.Actor == "" {
		return nil, "", nil
	}
	if _, ok := o.Roster.Principal(o.Actor); ok {
		return []string{o.Actor}, "", nil
	}
	if slices.Contains(roles, o.Actor) {
		if names = o.Roster.Holders()[o.Actor]; len(names) > 0 {
			return names, o.Actor, nil
		}
		return nil, "", fault.New(fault.Refused, CodeNotAuthenticated, "nobody holds the role %s", o.Actor).Hint("proveto flow principals list")
	}
	known := append(o.Roster.names(), roles...)
	e := fault.New(fault.NotFound, CodeNotFound, "%.80q is no principal and no role", o.Actor)
	if near := strictyaml.Nearest(o.Actor, known); near != "" {
		e = e.Hint("did you mean %s?", near)
	}
	return nil, "", e.Hint("principals and roles: %s", strings.Join(known, ", "))
}

// speaks finds the principal of a key, as of now.
func (o *ChooseOptions) speaks(c candidate) (Principal, error) {
	p, err := o.Roster.SignedBy(authorized(c.pub), o.At, o.Revoked)
	if err != nil {
		return Principal{}, fmt.Errorf("%s: %w", c.from, err)
	}
	if err := o.Revoked.Check(Who{Principal: p.Name, Key: ssh.FingerprintSHA256(c.pub)}); err != nil {
		return Principal{}, fmt.Errorf("%s: %w", c.from, err)
	}
	return p, nil
}

// first takes the first key that speaks for a wanted principal; of a role that
// several hold, every key is looked at, so that no order of keys decides who
// acts.
func (o *ChooseOptions) first(ctx context.Context, wanted []string, role string) (Choice, error) {
	var (
		found   []candidate
		who     []Principal
		refused error // why the first key of a wanted principal does not do
		trouble error // what kept keys from being looked at
	)
	for c, err := range o.candidates(ctx) {
		if err != nil {
			trouble = cmp.Or(trouble, err)
			continue
		}
		owner := o.Roster.owner(authorized(c.pub))
		if owner == "" || len(wanted) > 0 && !slices.Contains(wanted, owner) {
			continue
		}
		p, err := o.speaks(c)
		if err == nil && len(wanted) <= 1 {
			choice, err := c.choice(ctx, p, role)
			if err == nil || ctx.Err() != nil {
				return choice, err
			}
			refused = cmp.Or(refused, err) // locked; there may be another key
			continue
		}
		if err != nil {
			refused = cmp.Or(refused, err)
			continue
		}
		if !slices.ContainsFunc(who, func(q Principal) bool { return q.Name == p.Name }) {
			found, who = append(found, c), append(who, p)
		}
	}
	if err := ctx.Err(); err != nil {
		return Choice{}, err
	}
	switch {
	case len(who) == 1:
		return found[0].choice(ctx, who[0], role)
	case len(who) == 0 && refused != nil:
		return Choice{}, refused
	case len(who) == 0:
		return Choice{}, o.nobody(trouble)
	}
	e := fault.New(fault.Usage, CodeAmbiguousActor, "you can sign for %d principals with the role %s", len(who), role)
	for _, p := range who {
		e = e.Hint("--actor %s", p.Name)
	}
	return Choice{}, e
}

// nobody is the refusal of a caller without a key for the actor.
func (o *ChooseOptions) nobody(trouble error) error {
	who := cmp.Or(o.Actor, "any principal")
	e := fault.New(fault.Refused, CodeNotAuthenticated, "no key here speaks for %s", who)
	if p, ok := o.Roster.Principal(o.Actor); ok && p.Kind == KindAgent {
		e.What += fmt.Sprintf(", an agent of %s: agents act by the capability of their launch", p.Operator)
	}
	e.Err = trouble
	return e.Hint("proveto flow principals list")
}

// named is the key that the user named.
func (o *ChooseOptions) named(ctx context.Context) (candidate, error) {
	name, from := o.Key, FromFlag
	if name == "" {
		name, from = o.VariableKey, FromVariable
	}
	if !strings.HasPrefix(name, "SHA256:") {
		return o.file(homeFile(name)).candidate(ctx, from)
	}
	if g := o.Generated.Key; !g.IsZero() && g.Fingerprint() == name {
		return g.candidate(from), nil
	}
	k, err := agentSocket(o.Agent).find(ctx, name)
	if err == nil && k.IsZero() {
		if c, gitErr := o.git(ctx); gitErr == nil && c.pub != nil && ssh.FingerprintSHA256(c.pub) == name {
			c.from = from
			return c, nil
		}
	}
	if k.IsZero() {
		e := fault.New(fault.NotFound, CodeNotFound, "no key %.80s: not in ssh-agent, not git's, not the generated one", name)
		e.Err = err
		return candidate{}, e.Hint("ssh-add -l")
	}
	return k.candidate(from), nil
}

func (o *ChooseOptions) file(name string) keyFile {
	return keyFile{name, agentSocket(o.Agent), o.PassphraseFunc}
}

// candidates yields the keys that nobody named, in order, as they are asked for.
func (o *ChooseOptions) candidates(ctx context.Context) iter.Seq2[candidate, error] {
	return func(yield func(candidate, error) bool) {
		generated := func() bool {
			g := o.Generated.Key
			return g.IsZero() || yield(g.candidate(FromGenerated), nil)
		}
		if !o.Roster.Enforced && !generated() {
			return
		}
		if c, err := o.git(ctx); (err != nil || c.pub != nil) && !yield(c, err) {
			return
		}
		if o.Agent != "" {
			list, err := agentSocket(o.Agent).keys(ctx)
			if err != nil && !yield(candidate{}, fmt.Errorf("%s: %w", FromAgent, err)) {
				return
			}
			for _, k := range list {
				if !yield(k.candidate(FromAgent), nil) {
					return
				}
			}
		}
		generated()
	}
}

// git is the key with which git signs, when it is one of SSH: a file, or the
// public key itself. The zero candidate when there is none.
func (o *ChooseOptions) git(ctx context.Context) (candidate, error) {
	if o.GitKeyFunc == nil {
		return candidate{}, nil
	}
	value, err := o.GitKeyFunc(ctx)
	if err != nil {
		return candidate{}, fmt.Errorf("%s: %w", FromGit, err)
	}
	literal, ok := strings.CutPrefix(value, "key::")
	if !ok && isKeyType(strings.SplitN(value, " ", 2)[0]) {
		literal, ok = value, true
	}
	if ok {
		pub, err := parseKeyFile(string(FromGit), []byte(literal))
		if err != nil {
			return candidate{}, err
		}
		return candidate{pub, FromGit, func(ctx context.Context) (Key, error) { return o.file("").behind(ctx, pub) }}, nil
	}
	name := homeFile(value)
	if !isFile(name) {
		return candidate{}, nil // the key of another program, or of another machine
	}
	c, err := o.file(name).candidate(ctx, FromGit)
	switch {
	case fault.Has(err, CodeKeyBad): // a file for something else
		return candidate{}, nil
	case err != nil:
		return candidate{}, fmt.Errorf("%s: %w", FromGit, err)
	}
	return c, nil
}

func isFile(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && fi.Mode().IsRegular()
}
