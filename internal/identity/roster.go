package identity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// FlowNamespace is the SSHSIG namespace of everything that a principal signs in
// a flow.
const FlowNamespace = "proveto-flow-v1"

// SchemaRoster is the schema of a roster's JSON.
const SchemaRoster = "proveto/roster/v1"

// Roster says who is who in a run: principals, and the keys that speak for them.
// Its JSON is canonical when written by [evidence.Canonical] and is checked when
// it is read. Callers do not change its slices.
type Roster struct {
	Schema     string      `json:"schema"`
	Enforced   bool        `json:"enforced"` // the repository has principals, so separation of duties holds
	Principals []Principal `json:"principals"`
	Signers    Signers     `json:"signers"` // for these principals only
}

// LocalRoster is the roster of a repository without principals: the person at
// this machine is principal local, holds every role and every right, and
// separation of duties cannot hold.
func LocalRoster(p Person) Roster {
	return Roster{
		Schema:     SchemaRoster,
		Principals: []Principal{{Name: LocalPrincipal, Kind: KindHuman, Roles: sorted(roles), Rights: sorted(rights)}},
		Signers:    Signers{{Principals: []string{LocalPrincipal}, Key: p.AuthorizedKey()}},
	}
}

// ParseRoster joins the two files of a repository. A key that speaks for two
// principals is an error, since decisions are counted by principals; so is a key
// of an agent. Lines for other names are left out.
func ParseRoster(signers, principals []byte) (Roster, error) {
	all, err := ParsePrincipals(principals)
	if err != nil {
		return Roster{}, err
	}
	lines, err := ParseSigners(signers)
	if err != nil {
		return Roster{}, err
	}
	r := Roster{Schema: SchemaRoster, Enforced: true, Principals: all, Signers: Signers{}}
	for _, l := range lines {
		if l.Namespaces != "" && !matchList(FlowNamespace, l.Namespaces) {
			continue
		}
		l.Principals = slices.DeleteFunc(slices.Clone(l.Principals), func(name string) bool {
			_, ok := find(all, name)
			return !ok
		})
		if len(l.Principals) > 0 {
			r.Signers = append(r.Signers, l)
		}
	}
	if err := r.check(); err != nil {
		return Roster{}, err
	}
	return r, nil
}

// check holds what both ways to a roster must hold.
func (r Roster) check() error {
	owner := map[string]string{}
	for _, l := range r.Signers {
		where := SignersFile
		if l.Line > 0 {
			where = fmt.Sprintf("%s:%d", SignersFile, l.Line)
		}
		for _, name := range l.Principals {
			p, ok := r.Principal(name)
			if !ok {
				return badLine("%s: %.80q is no principal", where, name)
			}
			if p.Kind == KindAgent {
				return badLine("%s: a key of %s, which is an agent: agents act by capabilities and hold no key", where, name).
					Hint(`a line with namespaces="git" is not concerned`)
			}
			if o, ok := owner[l.Key]; ok && o != name {
				return badLine("%s: one key for %s and %s: who is one person is one principal", where, o, name)
			}
			owner[l.Key] = name
		}
	}
	return nil
}

// UnmarshalJSON reads what was written and checks it.
func (r *Roster) UnmarshalJSON(text []byte) error {
	type plain Roster
	var p plain
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	got := Roster(p)
	if got.Schema != SchemaRoster {
		return badLine("a roster of schema %.80q, want %s", got.Schema, SchemaRoster)
	}
	if !slices.IsSortedFunc(got.Principals, func(a, b Principal) int { return strings.Compare(a.Name, b.Name) }) {
		return badLine("the principals of a roster are not in order")
	}
	for _, p := range got.Principals {
		if why := p.wrong(); why != "" || !validName(p.Name) || !slices.Contains(kinds, string(p.Kind)) {
			return badLine("a roster in which principal %.80q %s", p.Name, why)
		}
	}
	if a, b, ok := alike(got.Principals); ok {
		return badLine("a roster in which %s and %s differ only in case", a, b)
	}
	if err := got.check(); err != nil {
		return err
	}
	*r = got
	return nil
}

// Digest names the roster: equal for equal content.
func (r Roster) Digest() (evidence.Digest, error) {
	c, err := evidence.Canonical(r)
	if err != nil {
		return "", err
	}
	return evidence.DigestOf(c), nil
}

// Principal finds a principal by name.
func (r Roster) Principal(name string) (Principal, bool) { return find(r.Principals, name) }

// Holders lists the principals of each role, sorted. A role that nobody holds is
// not there.
func (r Roster) Holders() map[string][]string {
	out := map[string][]string{}
	for _, p := range r.Principals {
		for _, role := range p.Roles {
			out[role] = append(out[role], p.Name)
		}
	}
	return out
}

// names lists the principals.
func (r Roster) names() []string {
	out := make([]string, len(r.Principals))
	for i, p := range r.Principals {
		out[i] = p.Name
	}
	return out
}

// SignedBy finds the principal for whom a key (type and base64) spoke at a time.
// Refusals: not_authenticated for a key that speaks for nobody or not yet,
// expired, revoked. For an act of now the time is the ledger's, which never goes
// back, and [Revocations.Check] has the last word.
func (r Roster) SignedBy(key string, at time.Time, revoked Revocations) (Principal, error) {
	print, err := fingerprint(key)
	if err != nil {
		return Principal{}, err
	}
	names, st := r.Signers.Speakers(key, FlowNamespace, at)
	if len(names) == 0 {
		return Principal{}, r.silent(key, print, st)
	}
	p, ok := r.Principal(names[0]) // the only one, or the roster would not have been read
	if !ok {
		return Principal{}, r.silent(key, print, Unknown)
	}
	w := Who{Principal: p.Name, Key: print}
	if word, by := revoked.Judge(w, at); word == WordVoid {
		return Principal{}, by.error(w)
	}
	return p, nil
}

// owner is the principal of a key, whether it speaks or not; empty when there is
// none.
func (r Roster) owner(key string) string {
	for _, l := range r.Signers {
		if l.Key == key {
			return l.Principals[0] // the only one, or the roster would not have been read
		}
	}
	return ""
}

// silent is the refusal of a key that speaks for nobody.
func (r Roster) silent(key, print string, st Standing) *fault.Error {
	var when, who string
	for _, l := range r.Signers {
		if l.Key != key {
			continue
		}
		who = l.Principals[0]
		switch {
		case st == Expired && !l.Before.IsZero():
			when = l.Before.Format(time.RFC3339)
		case st == NotYet && !l.After.IsZero():
			when = l.After.Format(time.RFC3339)
		}
	}
	e := fault.New(fault.Refused, CodeNotAuthenticated, "key %s speaks for no principal", print)
	switch st {
	case Expired:
		e = fault.New(fault.Refused, CodeExpired, "key %s spoke for %s until %s", print, who, when)
	case NotYet:
		e.What = fmt.Sprintf("key %s speaks for %s from %s on, not yet", print, who, when)
	}
	return e.Hint("proveto flow principals list")
}

// Verify checks a signature over a statement in [FlowNamespace] and finds whose
// it is, at a time; it returns the key (type and base64), too. A signature that
// does not verify is tampered, code signature_bad; the refusals of
// [Roster.SignedBy] apply.
func (r Roster) Verify(statement []byte, armored string, at time.Time, revoked Revocations) (Principal, string, error) {
	key, err := SignatureKey(armored)
	if err != nil {
		return Principal{}, "", err
	}
	if err := VerifyStatement(key, statement, armored, FlowNamespace); err != nil {
		return Principal{}, key, err
	}
	p, err := r.SignedBy(key, at, revoked)
	return p, key, err
}

// Fingerprint is the SHA256:… form of a key (type and base64).
func Fingerprint(key string) (string, error) { return fingerprint(key) }

// fingerprint is the SHA256:… form of a key (type and base64).
func fingerprint(key string) (string, error) {
	pub, err := parseKeyWords(key)
	if err != nil {
		return "", err
	}
	return ssh.FingerprintSHA256(pub), nil
}

func sorted(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return out
}
