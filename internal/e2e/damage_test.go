package e2e

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // to write what no command writes
)

// open is the database of a world, for damage.
func (w *world) open() *sql.DB {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.state, "proveto.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := db.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return db
}

// copied is the same user with a copy of the state, to be damaged.
func (w *world) copied() *world {
	w.t.Helper()
	o := w.other()
	o.cache, o.origin = w.cache, w.state
	// With modes: a key that others may read is refused.
	if out, err := exec.Command("cp", "-a", w.state, o.state).CombinedOutput(); err != nil {
		w.t.Fatalf("copy the state: %v\n%s", err, out)
	}
	return o
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.state, "proveto.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = db.ExecContext(w.t.Context(), query, args...)
	if err := errors.Join(err, db.Close()); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

// times are what differs between two equal answers.
var times = regexp.MustCompile(`"(took_ms|reused_at|started|time|ms)": *("[^"]*"|[0-9]+)`)

// answers is everything that the product says about a state: the whole ledger,
// the result and each certificate.
func (w *world) answers() string {
	var out strings.Builder
	for _, args := range [][]string{{"ledger", "log", "--limit", "1000000"}, {"start"}, {"gaps", "--all"}, {"ledger", "head"}} {
		a := w.run(args...)
		fmt.Fprintf(&out, "%v: %d %s\n", args, a.exit, w.placeless(times.ReplaceAllString(a.stdout, "")))
	}
	return out.String()
}

// placeless is a text without the directory of the state, or of that which it was
// copied from.
func (w *world) placeless(s string) string {
	s = strings.ReplaceAll(s, w.state, "STATE")
	if w.origin != "" {
		s = strings.ReplaceAll(s, w.origin, "STATE")
	}
	return s
}

// TestDamagedByteIsFound changes one byte of the database at random places: it is
// found, or nothing that the product says depends on it.
func TestDamagedByteIsFound(t *testing.T) {
	t.Parallel()
	n := 25
	if long() {
		n = 200
	}
	r := draws(t)
	w := proven(t)
	w.must(0, "start") // the second start's result is that of all others
	want := w.answers()
	raw, err := os.ReadFile(filepath.Join(w.state, "proveto.db"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for range n {
		at, bit := r.IntN(len(raw)), byte(1)<<r.IntN(8)
		o := w.copied()
		damaged := bytes.Clone(raw)
		damaged[at] ^= bit
		if err := os.WriteFile(filepath.Join(o.state, "proveto.db"), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		a := o.run("ledger", "verify")
		switch a.exit {
		case 5:
			found++
		case 0:
			if got := o.answers(); got != want {
				t.Errorf("bit %#x of byte %d of the database changed: verify is silent, and an answer differs:\n%s", bit, at, firstDifference(got, want))
			}
		default:
			t.Errorf("bit %#x of byte %d of the database changed: ledger verify exit %d %s, want 5 or 0", bit, at, a.exit, a.Envelope.Message)
		}
	}
	t.Logf("%d of %d places were found; the rest changed no answer", found, n)
}

func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	from := max(0, i-100)
	return fmt.Sprintf("got  …%.300s\nwant …%.300s", a[from:], b[from:])
}

// TestDamagedTextIsFound changes one character in a column of every table that
// the ledger keeps.
func TestDamagedTextIsFound(t *testing.T) {
	t.Parallel()
	r := draws(t)
	w := proven(t)
	per := 1
	if long() {
		per = 8
	}
	for table, columns := range map[string][]string{
		"entries": {"time", "kind", "body", "leaf_hash"}, "tree_hashes": {"hash"}, "checkpoints": {"note"},
		"runs":         {"digest", "purpose", "snapshot", "started"},
		"certificates": {"digest", "language", "project", "unit", "symbol", "symbol_digest", "test", "snapshot"},
		"measurements": {"digest", "language", "project", "symbol", "inputs", "word"},
		"probes":       {"digest", "symbol"}, "starts": {"run_key", "invocation", "result", "tree", "repo"},
	} {
		for _, column := range columns {
			for range per {
				o := w.copied()
				row, ok := o.spoil(r, table, column)
				if !ok {
					continue
				}
				if a := o.run("ledger", "verify"); a.exit != 5 {
					t.Errorf("one character of %s.%s changed in row %d: ledger verify exit %d %s, want 5", table, column, row, a.exit, a.Envelope.Message)
				}
			}
		}
	}
}

// spoil changes one character of a random row; false when the table has no text
// there.
func (w *world) spoil(r *rand.Rand, table, column string) (int64, bool) {
	w.t.Helper()
	db := w.open()
	var n int64
	if err := db.QueryRowContext(w.t.Context(), "SELECT count(*) FROM "+table+" WHERE length("+column+") > 0").Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	if n == 0 {
		return 0, false
	}
	var id int64
	var text string
	query := fmt.Sprintf("SELECT rowid, %s FROM %s WHERE length(%s) > 0 ORDER BY rowid LIMIT 1 OFFSET %d", column, table, column, r.Int64N(n))
	if err := db.QueryRowContext(w.t.Context(), query).Scan(&id, &text); err != nil {
		w.t.Fatal(err)
	}
	b := []byte(text)
	at := r.IntN(len(b))
	b[at] = otherByte(b[at])
	if _, err := db.ExecContext(w.t.Context(), fmt.Sprintf("UPDATE %s SET %s = ? WHERE rowid = ?", table, column), string(b), id); err != nil {
		w.t.Fatal(err)
	}
	return id, true
}

// TestDamagedBlobIsFound changes one byte of a blob, shortens one and removes
// one.
func TestDamagedBlobIsFound(t *testing.T) {
	t.Parallel()
	r := draws(t)
	w := proven(t)
	var blobs []string
	err := filepath.WalkDir(filepath.Join(w.state, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, rerr := filepath.Rel(w.state, path)
			blobs, err = append(blobs, rel), rerr
		}
		return err
	})
	if err != nil || len(blobs) == 0 {
		t.Fatalf("%d blobs, %v", len(blobs), err)
	}
	n := 6
	if long() {
		n = 60
	}
	for i := range n {
		o := w.copied()
		path := filepath.Join(o.state, blobs[r.IntN(len(blobs))])
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		what := "removed"
		switch {
		case i%3 == 0:
			err = os.Remove(path)
		case len(raw) == 0:
			what, raw = "grown", []byte("x")
		case i%3 == 1:
			what, raw = "shortened", raw[:len(raw)-1]
		default:
			what = "edited"
			raw[r.IntN(len(raw))] ^= 1
		}
		if what != "removed" {
			err = os.WriteFile(path, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if a := o.run("ledger", "verify"); a.exit != 5 {
			t.Errorf("blob %s %s: ledger verify exit %d %s, want 5", path, what, a.exit, a.Envelope.Message)
		}
	}
}

// TestHandMadeCertificateIsRefused writes a certificate for a behaviour that
// none was earned for: as a row, and as a row with an entry.
func TestHandMadeCertificateIsRefused(t *testing.T) {
	t.Parallel()
	w := proven(t)
	refuted := w.must(0, "start").symbol("shop.Loose")
	if refuted.Word != "refuted" {
		t.Fatalf("Loose is %s", refuted.Word)
	}
	var symbol, digest string
	db := w.open()
	if err := db.QueryRowContext(t.Context(), "SELECT symbol FROM measurements WHERE word = 'refuted'").Scan(&symbol); err != nil {
		t.Fatal(err)
	}
	const forged = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	row := w.copied()
	row.exec("INSERT INTO certificates SELECT ?, 1000000, language, project, unit, ?, symbol_digest, test, snapshot FROM certificates LIMIT 1", forged, symbol)
	row.refuses("a row of its own", forged, "shop.Loose")

	// A row that points at the entry of another behaviour's certificate.
	var seq int64
	if err := db.QueryRowContext(t.Context(), "SELECT digest, seq FROM certificates LIMIT 1").Scan(&digest, &seq); err != nil {
		t.Fatal(err)
	}
	renamed := w.copied()
	renamed.exec("UPDATE certificates SET symbol = ? WHERE seq = ?", symbol, seq)
	renamed.refuses("a row that names another behaviour", "", "shop.Loose")

	// An entry with a body that says what was never measured, and its row.
	var body string
	if err := db.QueryRowContext(t.Context(), "SELECT body FROM entries WHERE seq = ?", seq).Scan(&body); err != nil {
		t.Fatal(err)
	}
	var cert map[string]any
	if err := json.Unmarshal([]byte(body), &cert); err != nil {
		t.Fatal(err)
	}
	own := cert["facts"].(map[string]any)["symbol"].(string)
	body = strings.ReplaceAll(body, `"`+own+`"`, `"`+symbol+`"`)
	entry := w.copied()
	entry.exec("INSERT INTO entries SELECT (SELECT max(seq) FROM entries) + 1, time, kind, ?, leaf_hash FROM entries WHERE seq = ?", body, seq)
	entry.exec("INSERT INTO certificates SELECT ?, (SELECT max(seq) FROM entries), language, project, unit, ?, symbol_digest, test, snapshot FROM certificates LIMIT 1", forged, symbol)
	entry.refuses("an entry of its own", forged, "shop.Loose")
}

// refuses wants the forgery found, and no credit for the behaviour.
func (w *world) refuses(what, id, name string) {
	w.t.Helper()
	if a := w.run("ledger", "verify"); a.exit != 5 {
		w.t.Errorf("%s: ledger verify exit %d %s, want 5", what, a.exit, a.Envelope.Message)
	}
	if id != "" {
		if a := w.run("verify", id); a.exit == 0 {
			w.t.Errorf("%s: verify %s passes:\n%s", what, id, clip(a.stdout))
		}
	}
	// The saved result is not asked: the tree is another one.
	w.write("notes.txt", what)
	defer func() {
		if err := os.Remove(filepath.Join(w.repo, "notes.txt")); err != nil {
			w.t.Error(err)
		}
	}()
	a := w.run("start")
	if slices.ContainsFunc(a.Envelope.Data.Symbols, func(s symbol) bool { return s.Name == name && s.Word == "proven" }) {
		w.t.Errorf("%s: %s is credited", what, name)
	}
}

// verifierKey is the public key of the engine, as ledger head shows it.
func (w *world) verifierKey() string {
	w.t.Helper()
	a := w.must(0, "ledger", "head")
	var doc struct {
		Data struct {
			VerifierKey string `json:"verifier_key"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(a.stdout), &doc); err != nil {
		w.t.Fatal(err)
	}
	if doc.Data.VerifierKey == "" {
		w.t.Fatalf("ledger head does not show the key: %s", a.stdout)
	}
	return doc.Data.VerifierKey
}

// TestNewerStateIsRefused: a state of a later version is left alone.
func TestNewerStateIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.must(0, "ledger", "head")
	w.exec("UPDATE meta SET value = '9999' WHERE key = 'schema'")
	a := w.must(1, "start")
	if a.Envelope.Code != "state_newer" || len(a.Envelope.Hints) == 0 {
		t.Errorf("code %s, hints %q", a.Envelope.Code, a.Envelope.Hints)
	}
}
