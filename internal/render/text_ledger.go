package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/view"
)

// Sentence is an answer that is one sentence.
func Sentence(w io.Writer, s string, _ Style) error {
	_, err := fmt.Fprintln(w, Line(s))
	return err
}

// Artifacts lists the files that were written.
func Artifacts(w io.Writer, as []view.Artifact, s Style) error {
	t := Table{Columns: []string{"kind", "path", "bytes"}, Word: -1, Right: map[int]bool{2: true}}
	for _, a := range as {
		t.Rows = append(t.Rows, []string{a.Kind, a.Path, strconv.FormatInt(a.Bytes, 10)})
	}
	return t.Write(w, s)
}

// Verified is what verify found.
func Verified(w io.Writer, v view.Verified, style Style) error {
	t := &text{Style: style}
	t.line("%s", Line(v.Text))
	if v.Signed {
		trust := "a key that the file itself names: whole, but by whom is not shown"
		if v.Trusted {
			trust = "the key that you named"
		}
		t.line("signed by %s (%s)", Line(v.Signer), trust)
	}
	if v.Certificate.ID != "" {
		t.line("")
		t.certificate(v.Certificate, v.Check)
	}
	if v.Run != nil {
		t.attested(*v.Run)
	}
	for _, r := range v.Reruns {
		word := "agrees"
		if !r.Agrees {
			word = "does not agree: " + r.Code
		}
		t.line("rerun %s: %s", word, Line(r.Text))
	}
	return t.flush(w)
}

// LedgerVerified is what the verification of the whole ledger found.
func LedgerVerified(w io.Writer, v view.LedgerVerified, style Style) error {
	t := &text{Style: style}
	t.line("%s", Line(v.Text))
	for _, p := range v.Problems {
		t.line("  %s", Line(p))
	}
	if !v.Sound && v.FirstBad > 0 {
		t.line("sound up to entry #%d", v.FirstBad-1)
	}
	return t.flush(w)
}

// Log is a page of the ledger.
func Log(w io.Writer, l view.Log, s Style) error {
	t := Table{Columns: []string{"seq", "time", "kind", "id", "summary"}, Word: -1, Right: map[int]bool{0: true}}
	for _, e := range l.Entries {
		id := e.ID
		if s.Terminal {
			id = short(e.ID)
		}
		t.Rows = append(t.Rows, []string{strconv.FormatInt(e.Seq, 10), e.Time.Format(time.RFC3339), e.Kind, id, e.Summary})
	}
	return t.Write(w, s)
}

// Entry is one entry of the ledger in full.
func Entry(w io.Writer, e view.LogEntry, style Style) error {
	t := &text{Style: style}
	t.line("entry  #%d  %s  %s", e.Seq, Line(e.Kind), e.Time.Format(time.RFC3339))
	t.line("leaf   %s", Line(e.Leaf))
	t.line("%s", Line(e.Summary))
	var body strings.Builder
	enc := json.NewEncoder(&body)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e.Body); err != nil {
		return fmt.Errorf("entry %d: %w", e.Seq, err)
	}
	for _, line := range strings.Split(strings.TrimRight(body.String(), "\n"), "\n") {
		t.line("%s", Line(line))
	}
	return t.flush(w)
}

// Head is the head of the ledger as --expect-head takes it.
func Head(w io.Writer, h view.Head, _ Style) error {
	_, err := fmt.Fprintf(w, "%d:%s\n", h.Seq, Line(h.Root))
	return err
}

// Config lists configuration keys; only the value when one was asked for.
func Config(w io.Writer, keys []view.ConfigKey, one bool, s Style) error {
	if one && len(keys) == 1 {
		_, err := fmt.Fprintln(w, Line(fmt.Sprint(keys[0].Value)))
		return err
	}
	t := Table{Columns: []string{"key", "value", "origin"}, Word: -1}
	for _, k := range keys {
		t.Rows = append(t.Rows, []string{k.Key, fmt.Sprint(k.Value), k.Origin})
	}
	return t.Write(w, s)
}

// Version is what this build is.
func Version(w io.Writer, v view.Version, _ Style) error {
	commit := v.Commit
	if v.Modified {
		commit += " (modified)"
	}
	_, err := fmt.Fprintf(w, "proveto %s\n", strings.TrimSpace(strings.Join([]string{Line(v.Version), Line(commit), Line(v.Go), Line(v.Platform)}, "  ")))
	return err
}
