package identity

import "strings"

// String is the line as an allowed_signers file has it.
func (l SignerLine) String() string {
	var options []string
	if l.Namespaces != "" {
		options = append(options, `namespaces="`+strings.ReplaceAll(l.Namespaces, `"`, `\"`)+`"`)
	}
	if !l.After.IsZero() {
		options = append(options, `valid-after="`+l.After.UTC().Format("20060102150405")+`Z"`)
	}
	if !l.Before.IsZero() {
		options = append(options, `valid-before="`+l.Before.UTC().Format("20060102150405")+`Z"`)
	}
	parts := []string{strings.Join(l.Principals, ",")}
	if len(options) > 0 {
		parts = append(parts, strings.Join(options, ","))
	}
	return strings.Join(append(parts, l.Key), " ")
}

// Text is an allowed_signers file with these lines, for ssh-keygen -Y verify.
func (s Signers) Text() []byte {
	var b strings.Builder
	for _, l := range s {
		b.WriteString(l.String() + "\n")
	}
	return []byte(b.String())
}
