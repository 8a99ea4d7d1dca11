package identity

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/strictyaml"
)

// CodeConflict is a principal who is there already, and is somebody else.
const CodeConflict fault.Code = "conflict"

// AddPrincipal gives the new text of allowed_signers and principals.yaml with one
// more principal, or with one more key of a principal who is there. Empty texts
// are files that do not exist yet. What the files held stays as it was, comments
// included; adding the same again changes nothing. The key is type and base64;
// an agent has none.
//
// A principal who is there with another kind, other roles or other rights is a
// conflict: what somebody may do is changed by hand.
func AddPrincipal(signers, principals []byte, p Principal, key string) (newSigners, newPrincipals []byte, err error) {
	p.Roles, p.Rights = sorted(p.Roles), sorted(p.Rights)
	if err := addable(p); err != nil {
		return nil, nil, err
	}
	var old []Principal
	root, err := principalsSource.Parse(principals)
	if err == nil && !root.Empty() {
		old, err = ParsePrincipals(principals)
	}
	if err != nil {
		return nil, nil, err
	}
	if o, _ := find(old, p.Operator); p.Operator != "" && o.Kind != KindHuman {
		return nil, nil, fault.New(fault.Usage, "usage", "operator %.80q is no human of %s", p.Operator, PrincipalsFile).Hint("proveto flow principals list")
	}
	for _, o := range old {
		if o.Name != p.Name && strings.EqualFold(o.Name, p.Name) {
			return nil, nil, fault.New(fault.Usage, "usage", "principals %s and %s differ only in case", o.Name, p.Name).Hint("proveto flow principals list")
		}
	}
	newPrincipals = principals
	if was, ok := find(old, p.Name); !ok {
		if newPrincipals, err = insertPrincipal(principals, old, p); err != nil {
			return nil, nil, err
		}
	} else if !reflect.DeepEqual(was.clean(), p.clean()) {
		return nil, nil, fault.New(fault.Conflict, CodeConflict, "principal %s is there already, as %s", p.Name, was.yaml()).
			Hint("change it in %s", PrincipalsFile)
	}
	if newSigners, err = appendSigner(signers, p.Name, key); err != nil {
		return nil, nil, err
	}
	if _, err := ParseRoster(newSigners, newPrincipals); err != nil {
		return nil, nil, err
	}
	return newSigners, newPrincipals, nil
}

// clean makes absent and empty lists the same.
func (p Principal) clean() Principal {
	p.Roles, p.Rights = append([]string{}, p.Roles...), append([]string{}, p.Rights...)
	return p
}

func addable(p Principal) error {
	usage := func(format string, args ...any) error { return fault.New(fault.Usage, "usage", format, args...) }
	if !validName(p.Name) {
		return usage("%.80q is no name of a principal: want %s", p.Name, nameWant)
	}
	if why := p.wrong(); why != "" {
		return usage("principal %s %s", p.Name, why)
	}
	unknown := func(noun, name string, known []string) error {
		e := fault.New(fault.Usage, "usage", "unknown %s %.80q", noun, name)
		if near := strictyaml.Nearest(name, known); near != "" {
			return e.Hint("did you mean %s?", near)
		}
		return e.Hint("known: %s", strings.Join(known, ", "))
	}
	for _, r := range p.Roles {
		if !slices.Contains(roles, r) {
			return unknown("role", r, roles)
		}
	}
	for _, r := range p.Rights {
		if !validRight(r) {
			return unknown("right", r, rights)
		}
	}
	return nil
}

// signerNamespaces are what a key that we write down is good for.
const signerNamespaces = "proveto-*"

// appendSigner adds a line unless the key speaks for the principal already.
func appendSigner(text []byte, name, key string) ([]byte, error) {
	lines, err := ParseSigners(text)
	if err != nil || key == "" {
		return text, err
	}
	pub, bad := parseKeyWords(key)
	if bad != nil {
		return nil, bad
	}
	key = authorized(pub)
	for _, l := range lines {
		if l.Key == key && slices.Contains(l.Principals, name) && l.After.IsZero() && l.Before.IsZero() && (l.Namespaces == "" || matchList(FlowNamespace, l.Namespaces)) {
			return text, nil
		}
	}
	return appendLine(text, fmt.Sprintf("%s namespaces=%q %s", name, signerNamespaces, key)), nil
}

// appendLine adds a line in the manner of the file.
func appendLine(text []byte, line string) []byte {
	end := lineEnd(text)
	out := slices.Clone(text)
	if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, end...)
	}
	return append(append(out, line...), end...)
}

func lineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// insertPrincipal writes an entry below the last one, and proves by the parser
// that nothing else has changed.
func insertPrincipal(text []byte, old []Principal, p Principal) ([]byte, error) {
	entry := p.yaml()
	if len(old) == 0 {
		head := bytes.TrimRight(text, "\r\n\t ") // comments alone
		if len(head) > 0 {
			head = append(slices.Clone(head), '\n')
		}
		return append(head, "version: 1\nprincipals:\n  "+entry+"\n"...), nil
	}
	byHand := fault.New(fault.Refused, CodeRosterBad, "%s is not written with one principal a line, so that none is added to it", PrincipalsFile).
		Hint("add below principals: %s", entry)
	last, err := lastEntry(text)
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(text), "\n")
	indent := strings.Repeat(" ", last.Column-1)
	if last.Line > len(lines) || !strings.HasPrefix(lines[last.Line-1], indent) || strings.TrimLeft(lines[last.Line-1][:last.Column-1], " ") != "" {
		return nil, byHand
	}
	at := endOfEntry(lines, last)
	end := lineEnd(text)
	before := strings.Join(lines[:at], "")
	if !strings.HasSuffix(before, "\n") {
		before += end
	}
	out := []byte(before + indent + entry + end + strings.Join(lines[at:], ""))
	got, err := ParsePrincipals(out)
	want := append(slices.Clone(old), p)
	slices.SortFunc(want, func(a, b Principal) int { return strings.Compare(a.Name, b.Name) })
	if err != nil || !slices.EqualFunc(got, want, func(a, b Principal) bool { return reflect.DeepEqual(a.clean(), b.clean()) }) {
		return nil, byHand
	}
	return out, nil
}

// lastEntry is where the last principal of a file begins.
func lastEntry(text []byte) (strictyaml.Place, error) {
	root, err := principalsSource.Parse(text)
	if err != nil {
		return strictyaml.Place{}, err
	}
	pairs, err := root.Pairs("the file")
	if err != nil {
		return strictyaml.Place{}, err
	}
	var last strictyaml.Place
	for _, top := range pairs {
		if top.Name != "principals" {
			continue
		}
		entries, err := top.Value.Pairs("principals")
		if err != nil {
			return strictyaml.Place{}, err
		}
		for _, e := range entries {
			last = e.Key
		}
	}
	return last, nil
}

// endOfEntry counts the lines up to the end of the entry that begins at a place:
// what is indented deeper, comments and blank lines between included.
func endOfEntry(lines []string, entry strictyaml.Place) int {
	end := entry.Line
	for i := entry.Line; i < len(lines); i++ {
		body := strings.TrimLeft(lines[i], " ")
		deeper := len(lines[i])-len(body) >= entry.Column
		switch {
		case strings.TrimSpace(body) == "":
		case deeper:
			end = i + 1
		case body[0] == '#': // belongs to what comes next, if anything does
		default:
			return end
		}
	}
	return end
}

// yaml is the principal as one line of principals.yaml.
func (p Principal) yaml() string {
	parts := []string{"kind: " + string(p.Kind)}
	list := func(name string, words []string) {
		if len(words) == 0 {
			return
		}
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = plain(w)
		}
		parts = append(parts, name+": ["+strings.Join(quoted, ", ")+"]")
	}
	list("roles", p.Roles)
	list("rights", p.Rights)
	if p.Operator != "" {
		parts = append(parts, "operator: "+plain(p.Operator))
	}
	return plain(p.Name) + ": {" + strings.Join(parts, ", ") + "}"
}

// plain quotes what YAML could take for something else than a text.
func plain(s string) string {
	letter := s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
	reserved := slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s))
	if letter && !reserved && !strings.ContainsAny(s, `:*"`) {
		return s
	}
	return `"` + s + `"`
}

// ReadPublicKey reads a key as --key of principals add gives it: a line (type,
// base64, comment) or the name of a key file, of which a private one is read for
// its public half alone. It returns type and base64.
func ReadPublicKey(lineOrFile string) (string, error) {
	lineOrFile = strings.TrimPrefix(lineOrFile, "key::") // as git writes it
	if word, _, ok := strings.Cut(strings.TrimSpace(lineOrFile), " "); ok && isKeyType(word) {
		pub, err := parseKeyFile("--key", []byte(lineOrFile))
		if err != nil {
			return "", err
		}
		return authorized(pub), nil
	}
	name := homeFile(lineOrFile)
	f := keyFile{name: name}
	text, private, err := readKeyFile(name)
	if err != nil {
		return "", err
	}
	var pub ssh.PublicKey
	if !private {
		pub, err = parseKeyFile(name, text)
	} else if pub = f.beside(); pub == nil {
		pub, err = publicHalf(name, text)
	}
	if err != nil {
		return "", err
	}
	return authorized(pub), nil
}

// Revoke is the revocation of a principal or a key, by the name, the fingerprint
// or the line that a user gives; zero since means that what was said before
// stays. Errors: not_found, with the nearest name; usage for a time to come.
func (r Roster) Revoke(nameOrKey, reason string, since, at time.Time) (Revocation, error) {
	v := Revocation{Since: since, At: at, Reason: reason}
	if since.After(at) {
		return v, fault.New(fault.Usage, "usage", "a revocation counts from a time that has passed, not from %s", since.UTC().Format(time.RFC3339))
	}
	if _, ok := r.Principal(nameOrKey); ok {
		v.Principal = nameOrKey
		return v, nil
	}
	if print, ok := strings.CutPrefix(nameOrKey, "SHA256:"); ok {
		raw, err := base64.RawStdEncoding.Strict().DecodeString(print)
		if err != nil || len(raw) != 32 {
			return v, fault.New(fault.Usage, "bad_id", "%.80q is no fingerprint: want SHA256: and 43 characters", nameOrKey).Hint("ssh-keygen -lf FILE")
		}
		v.Key = nameOrKey
		return v, nil
	}
	if word, _, ok := strings.Cut(nameOrKey, " "); ok && isKeyType(word) {
		print, err := fingerprint(nameOrKey)
		v.Key = print
		return v, err
	}
	e := fault.New(fault.NotFound, CodeNotFound, "%.80q is no principal and no key", nameOrKey)
	if near := strictyaml.Nearest(nameOrKey, r.names()); near != "" {
		e = e.Hint("did you mean %s?", near)
	}
	return v, e.Hint("proveto flow principals list")
}
