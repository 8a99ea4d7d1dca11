package identity

import (
	"bytes"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/proveto/proveto/internal/fault"
)

// SignersFile is where a repository lists the keys of its principals.
const SignersFile = ".proveto/allowed_signers"

// maxRosterFile is the largest allowed_signers or principals.yaml that is read.
const maxRosterFile = 1 << 20

// minRSABits is the shortest RSA modulus that counts.
const minRSABits = 2048

// keyTypes are the types of keys that can sign; what is not listed is refused.
var keyTypes = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA,
	ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
}

const certSuffix = "-cert-v01@openssh.com"

// SignerLine is one line of an allowed_signers file. Times are UTC, in whole
// seconds, both included.
type SignerLine struct {
	Principals []string  `json:"principals"`
	Namespaces string    `json:"namespaces,omitempty"` // patterns as OpenSSH reads them; empty means all
	After      time.Time `json:"valid_after,omitzero"`
	Before     time.Time `json:"valid_before,omitzero"`
	Key        string    `json:"key"` // type and base64
	Line       int       `json:"-"`   // in the file, from 1
	Zoned      bool      `json:"-"`   // a time was read in the zone of this machine
}

// Signers says which keys speak for whom, as OpenSSH reads it.
type Signers []SignerLine

// Standing is what a key is worth to a reader of an allowed_signers file.
type Standing string

// The standings, best first.
const (
	Speaks         Standing = "speaks"
	Expired        Standing = "expired"         // valid before, no longer
	NotYet         Standing = "not_yet"         // valid later
	OtherNamespace Standing = "other_namespace" // listed, for other uses
	Unknown        Standing = "unknown"         // not listed
)

// Speakers lists the principals for whom a key (type and base64) speaks in a
// namespace at a time, sorted. When there are none, the standing says why, by
// the best of the key's lines.
func (s Signers) Speakers(key, namespace string, at time.Time) ([]string, Standing) {
	var names []string
	best := Unknown
	for _, l := range s {
		if l.Key != key {
			continue
		}
		st := l.standing(namespace, at)
		if st == Speaks {
			names = append(names, l.Principals...)
		}
		if rank(st) < rank(best) {
			best = st
		}
	}
	slices.Sort(names)
	return slices.Compact(names), best
}

func rank(s Standing) int {
	return slices.Index([]Standing{Speaks, Expired, NotYet, OtherNamespace, Unknown}, s)
}

// standing compares as OpenSSH does: in whole seconds, both ends included.
func (l SignerLine) standing(namespace string, at time.Time) Standing {
	at = at.Truncate(time.Second)
	switch {
	case l.Namespaces != "" && !matchList(namespace, l.Namespaces):
		return OtherNamespace
	case !l.After.IsZero() && at.Before(l.After):
		return NotYet
	case !l.Before.IsZero() && at.After(l.Before):
		return Expired
	}
	return Speaks
}

// ParseSigners reads an allowed_signers file. Times without a zone are those of
// this machine, as with OpenSSH. What OpenSSH would read and this does not is an
// error, never skipped: certificates and cert-authority lines (cert_unsupported),
// patterns among the principals, keys that are too short or of another type.
func ParseSigners(text []byte) (Signers, error) { return parseSigners(text, time.Local) }

func parseSigners(text []byte, zone *time.Location) (Signers, error) {
	if len(text) > maxRosterFile {
		return nil, fault.New(fault.Usage, CodeRosterBad, "%s has %d bytes, want at most %d", SignersFile, len(text), maxRosterFile)
	}
	var out Signers
	for i, line := range bytes.Split(text, []byte("\n")) {
		l, ok, err := parseSignerLine(string(line), zone)
		if err != nil {
			err.What = fmt.Sprintf("%s:%d: %s", SignersFile, i+1, err.What)
			return nil, err
		}
		if ok {
			l.Line = i + 1
			out = append(out, l)
		}
	}
	return out, nil
}

func badLine(format string, args ...any) *fault.Error {
	return fault.New(fault.Usage, CodeRosterBad, format, args...)
}

const blanks = " \t"

// parseSignerLine reads one line; false for a blank one or a comment.
func parseSignerLine(line string, zone *time.Location) (SignerLine, bool, *fault.Error) {
	line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), blanks)
	if line == "" || line[0] == '#' {
		return SignerLine{}, false, nil
	}
	if i := strings.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }); i >= 0 {
		return SignerLine{}, false, badLine("a control character (%U)", line[i])
	}
	names, rest, err := cutPrincipals(line)
	if err != nil {
		return SignerLine{}, false, err
	}
	l := SignerLine{Principals: names}
	word, _, _ := strings.Cut(strings.ReplaceAll(rest, "\t", " "), " ")
	if !isKeyType(word) {
		options, after, ok := cutOptions(rest)
		if !ok {
			return SignerLine{}, false, badLine("the options have a quote without its end")
		}
		if err := l.options(options, zone); err != nil {
			return SignerLine{}, false, err
		}
		rest = after
	}
	pub, err := parseKeyWords(rest)
	if err != nil {
		return SignerLine{}, false, err
	}
	l.Key = authorized(pub)
	return l, true, nil
}

func isKeyType(word string) bool {
	return slices.Contains(keyTypes, word) || strings.HasSuffix(word, certSuffix)
}

// cutPrincipals reads the first word, which may be quoted as a whole.
func cutPrincipals(line string) (names []string, rest string, _ *fault.Error) {
	var list string
	if quoted, ok := strings.CutPrefix(line, `"`); ok {
		list, rest, ok = strings.Cut(quoted, `"`)
		if !ok {
			return nil, "", badLine("the principals have a quote without its end")
		}
	} else {
		i := strings.IndexAny(line, blanks)
		if i < 0 {
			return nil, "", badLine("a line has principals, options and a key; this has one word")
		}
		list, rest = line[:i], line[i:]
	}
	names = strings.Split(list, ",")
	for _, n := range names {
		if strings.ContainsAny(n, "*?!") {
			return nil, "", badLine("%.80q is a pattern; name each principal", n)
		}
		if !validName(n) {
			return nil, "", badLine("%.80q is no name of a principal: want %s", n, nameWant)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), strings.TrimLeft(rest, blanks), nil
}

// cutOptions cuts at the first blank outside quotes.
func cutOptions(s string) (options, rest string, ok bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == '"':
			i++
		case s[i] == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(blanks, s[i]) >= 0:
			return s[:i], strings.TrimLeft(s[i:], blanks), true
		}
	}
	return s, "", !quoted
}

// options reads option[,option…]; names are of either case, as with OpenSSH.
func (l *SignerLine) options(text string, zone *time.Location) *fault.Error {
	seen := map[string]bool{}
	for rest := text; ; {
		name, value, after, err := cutOption(rest)
		if err != nil {
			return err
		}
		if seen[name] {
			return badLine("%s is there twice", name)
		}
		seen[name] = true
		switch name {
		case "namespaces":
			if value == "" {
				return badLine("namespaces is empty, so the key would be good for nothing")
			}
			l.Namespaces = value
		case "valid-after", "valid-before":
			t, ok := parseSSHTime(value, zone)
			l.Zoned = l.Zoned || !strings.HasSuffix(strings.ToUpper(value), "Z") && !strings.HasSuffix(strings.ToUpper(value), "UTC")
			if !ok {
				return badLine("%s %.40q is no time: want YYYYMMDD[HHMM[SS]], with Z for UTC", name, value)
			}
			if name == "valid-after" {
				l.After = t
			} else {
				l.Before = t
			}
		}
		if after == "" {
			break
		}
		if rest = after[1:]; rest == "" {
			return badLine("the options end with a comma")
		}
	}
	if !l.After.IsZero() && !l.Before.IsZero() && !l.After.Before(l.Before) {
		return badLine("valid-before is not after valid-after")
	}
	return nil
}

// cutOption takes one name="value" off the text; what is after it is empty or
// begins with a comma.
func cutOption(text string) (name, value, after string, _ *fault.Error) {
	end := strings.IndexAny(text, "=,")
	if end < 0 {
		end = len(text)
	}
	name = strings.ToLower(text[:end])
	if name == "cert-authority" {
		return "", "", "", certUnsupported("a cert-authority line")
	}
	if name != "namespaces" && name != "valid-after" && name != "valid-before" {
		return "", "", "", badLine("%.80q is neither an option nor a type of key that is read here", text[:end]).
			Hint("options: namespaces, valid-after, valid-before; keys: %s", strings.Join(keyTypes, ", "))
	}
	quoted, ok := strings.CutPrefix(text[end:], `="`)
	if !ok {
		return "", "", "", badLine(`%s has no value: want %s="…"`, name, name)
	}
	var v strings.Builder
	for i := 0; i < len(quoted); i++ {
		switch {
		case quoted[i] == '\\' && i+1 < len(quoted) && quoted[i+1] == '"':
			v.WriteByte('"')
			i++
		case quoted[i] == '"':
			if after = quoted[i+1:]; after != "" && after[0] != ',' {
				return "", "", "", badLine("%.40q follows the value of %s, want a comma or a blank", after, name)
			}
			return name, v.String(), after, nil
		default:
			v.WriteByte(quoted[i])
		}
	}
	return "", "", "", badLine("the value of %s has no closing quote", name)
}

func certUnsupported(what string) *fault.Error {
	return fault.New(fault.Refused, CodeCertUnsupported, "%s: certificates are not read in this version", what).
		Hint("list the keys of the principals themselves")
}

// parseSSHTime reads YYYYMMDD[HHMM[SS]], of the zone unless Z or UTC follows.
// Unlike strptime it refuses days that no month has.
func parseSSHTime(s string, zone *time.Location) (time.Time, bool) {
	upper := strings.ToUpper(s)
	for _, suffix := range []string{"Z", "UTC"} {
		if t, ok := strings.CutSuffix(upper, suffix); ok {
			upper, zone = t, time.UTC
			break
		}
	}
	layout := map[int]string{8: "20060102", 12: "200601021504", 14: "20060102150405"}[len(upper)]
	if layout == "" || strings.Trim(upper, "0123456789") != "" {
		return time.Time{}, false
	}
	t, err := time.ParseInLocation(layout, upper, zone)
	if err != nil || t.Unix() <= 0 {
		return time.Time{}, false
	}
	return t.UTC(), true
}

// parseKeyWords reads type and base64; what follows is a comment.
func parseKeyWords(text string) (ssh.PublicKey, *fault.Error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(blanks, r) })
	if len(words) < 2 {
		return nil, badLine("there is no key at the end of the line")
	}
	if strings.HasSuffix(words[0], certSuffix) {
		return nil, certUnsupported("the key is a certificate")
	}
	if !slices.Contains(keyTypes, words[0]) {
		return nil, badLine("keys of type %.40q are not read here", words[0]).Hint("keys: %s", strings.Join(keyTypes, ", "))
	}
	blob, err := base64.StdEncoding.DecodeString(words[1])
	if err != nil {
		return nil, badLine("the key is not base64")
	}
	pub, err := ssh.ParsePublicKey(blob)
	if err != nil || pub.Type() != words[0] || !bytes.Equal(pub.Marshal(), blob) {
		return nil, badLine("the key is no %s key", words[0])
	}
	if why := weak(pub); why != "" {
		return nil, badLine("%s", why)
	}
	return pub, nil
}

// weak says why a key is not strong enough or of no type that counts; empty when
// it is.
func weak(pub ssh.PublicKey) string {
	if !slices.Contains(keyTypes, pub.Type()) {
		return fmt.Sprintf("keys of type %s do not count", pub.Type())
	}
	if pub.Type() != ssh.KeyAlgoRSA {
		return ""
	}
	c, ok := pub.(ssh.CryptoPublicKey)
	if !ok {
		return "an RSA key that cannot be looked into"
	}
	k, ok := c.CryptoPublicKey().(*rsa.PublicKey)
	if !ok {
		return "an RSA key that cannot be looked into"
	}
	if n := k.N.BitLen(); n < minRSABits {
		return fmt.Sprintf("the RSA key has %d bits, want at least %d", n, minRSABits)
	}
	return ""
}
