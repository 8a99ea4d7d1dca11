package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/view"
)

// Principals writes who is who.
func Principals(w io.Writer, v view.Principals, _ Style) error {
	var b strings.Builder
	if v.Commit != "" {
		fmt.Fprintf(&b, "as of commit %.12s\n", v.Commit)
	}
	for _, p := range v.Principals {
		fmt.Fprintf(&b, "%-12s %s", Line(p.Name), p.Kind)
		if p.Operator != "" {
			fmt.Fprintf(&b, " of %s", Line(p.Operator))
		}
		if len(p.Roles) > 0 {
			fmt.Fprintf(&b, "  roles %s", strings.Join(p.Roles, ", "))
		}
		if len(p.Rights) > 0 {
			fmt.Fprintf(&b, "  rights %s", Line(strings.Join(p.Rights, ", ")))
		}
		if p.Revoked != "" {
			fmt.Fprintf(&b, "  REVOKED: %s", Line(p.Revoked))
		}
		b.WriteByte('\n')
		for _, k := range p.Keys {
			fmt.Fprintf(&b, "    %s %s  %s", k.Fingerprint, k.Type, strings.ReplaceAll(k.State, "_", " "))
			if k.After != nil {
				fmt.Fprintf(&b, "  from %s", k.After.UTC().Format(time.RFC3339))
			}
			if k.Before != nil {
				fmt.Fprintf(&b, "  until %s", k.Before.UTC().Format(time.RFC3339))
			}
			b.WriteByte('\n')
		}
	}
	for _, r := range v.Revoked {
		fmt.Fprintf(&b, "revoked  %s  %s", Line(r.Principal+r.Key), r.At.UTC().Format(time.RFC3339))
		if r.Since != nil {
			fmt.Fprintf(&b, ", as of %s", r.Since.UTC().Format(time.RFC3339))
		}
		fmt.Fprintf(&b, ": %s\n", Line(r.Reason))
	}
	if v.Note != "" {
		fmt.Fprintf(&b, "%s\n", Line(v.Note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// PrincipalAdded writes what changes in the files of a repository.
func PrincipalAdded(w io.Writer, v view.PrincipalAdded, _ Style) error {
	var b strings.Builder
	for _, f := range v.Files {
		for l := range strings.Lines(f.Diff) {
			b.WriteString(Line(strings.TrimSuffix(l, "\n")) + "\n")
		}
	}
	if v.Key != "" {
		fmt.Fprintf(&b, "key  %s\n", v.Key)
	}
	if v.KeyFile != "" {
		fmt.Fprintf(&b, "key file  %s\n", Line(v.KeyFile))
	}
	fmt.Fprintf(&b, "%s\n", Line(v.Text))
	_, err := io.WriteString(w, b.String())
	return err
}

// PrincipalRevoked writes a revocation and what it did to open runs.
func PrincipalRevoked(w io.Writer, v view.PrincipalRevoked, _ Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", Line(v.Text))
	for _, r := range v.Runs {
		fmt.Fprintf(&b, "%s  %s", r.Run, r.Status)
		for _, x := range []struct {
			word string
			of   []string
		}{{"leases ended", r.Leases}, {"stale", r.Stale}, {"void", r.Void}} {
			if len(x.of) > 0 {
				fmt.Fprintf(&b, "  %s: %s", x.word, Line(strings.Join(x.of, ", ")))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// FlowSigned writes a signed decision.
func FlowSigned(w io.Writer, v view.FlowSigned, _ Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s by %s with key %s at %s: %s", v.Decision, Line(v.Principal), v.Key, v.At.UTC().Format(time.RFC3339), v.Worth)
	if v.Why != "" {
		fmt.Fprintf(&b, " (%s)", Line(v.Why))
	}
	b.WriteByte('\n')
	if len(v.Files) == 0 {
		fmt.Fprintf(&b, "%s\n%s", Line(v.Statement), v.Signature)
	}
	for _, f := range v.Files {
		fmt.Fprintf(&b, "wrote %s\n", Line(f))
	}
	if len(v.Files) > 0 {
		fmt.Fprintf(&b, "there, anybody can run\n  %s\n", Line(v.Verify))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
