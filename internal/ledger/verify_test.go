package ledger_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/blob"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/identity"
	"github.com/proveto/proveto/internal/ledger"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

// sql changes the database behind the ledger's back, as somebody with a shell
// can.
func (b *bench) sql(t testing.TB, text string, args ...any) {
	t.Helper()
	res, err := b.db.SQL().ExecContext(t.Context(), text, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s changed %d rows, %v", text, n, err)
	}
}

// rehash makes the entry's own hash agree with its bytes again.
func (b *bench) rehash(t testing.TB, seq int64) {
	t.Helper()
	var r store.EntryRow
	if err := b.db.Read(t.Context(), func(tx *store.Tx) (err error) { r, err = tx.Entry(t.Context(), seq); return err }); err != nil {
		t.Fatal(err)
	}
	b.sql(t, "UPDATE entries SET leaf_hash = $1 WHERE seq = $2", ledger.LeafOf(r), seq)
}

func TestTamperingIsFound(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		tamper func(t *testing.T, b *bench, s sample)
		code   fault.Code
		bad    int64 // first bad entry; 0: none
		sound  int64
	}{
		{"entry edited", func(t *testing.T, b *bench, s sample) {
			b.sql(t, "UPDATE entries SET body = replace(body, 'stale_subject', 'fresh_subject') WHERE seq = 26")
		}, ledger.CodeBroken, 26, 1},
		{"entry edited and rehashed", func(t *testing.T, b *bench, s sample) {
			b.sql(t, "UPDATE entries SET body = replace(body, 'stale_subject', 'fresh_subject') WHERE seq = 26")
			b.rehash(t, 26)
		}, ledger.CodeBroken, 26, 1},
		{"kind edited", func(t *testing.T, b *bench, s sample) {
			b.sql(t, "UPDATE entries SET kind = 'claim' WHERE seq = 21")
		}, ledger.CodeBroken, 21, 1},
		{"time edited", func(t *testing.T, b *bench, s sample) {
			b.sql(t, "UPDATE entries SET time = '2020-01-01T00:00:00Z' WHERE seq = 21")
		}, ledger.CodeBroken, 21, 1},
		{"entry removed", func(t *testing.T, b *bench, s sample) { b.sql(t, "DELETE FROM entries WHERE seq = 5") }, ledger.CodeBroken, 5, 1},
		{"tail removed", func(t *testing.T, b *bench, s sample) { b.sql(t, "DELETE FROM entries WHERE seq > 24") }, ledger.CodeBroken, 0, 1},
		{"tail removed with its hashes", func(t *testing.T, b *bench, s sample) {
			b.sql(t, "DELETE FROM entries WHERE seq > 1")
			b.sql(t, "DELETE FROM tree_hashes WHERE idx > 0")
			for _, table := range []string{"runs", "certificates", "measurements", "probes", "waivers", "starts"} {
				b.sql(t, "DELETE FROM "+table)
			}
		}, ledger.CodeRolledBack, 0, 1},
		{"entries swapped", func(t *testing.T, b *bench, s sample) {
			b.sql(t, "UPDATE entries SET seq = 1000 WHERE seq = 3")
			b.sql(t, "UPDATE entries SET seq = 3 WHERE seq = 4")
			b.sql(t, "UPDATE entries SET seq = 4 WHERE seq = 1000")
		}, ledger.CodeBroken, 3, 1},
		{"stored hash edited", func(t *testing.T, b *bench, s sample) {
			b.sql(t, "UPDATE tree_hashes SET hash = (SELECT hash FROM tree_hashes WHERE idx = 3) WHERE idx = 2")
		}, ledger.CodeBroken, 0, 26},
		{"checkpoint edited", func(t *testing.T, b *bench, s sample) {
			b.sql(t, "UPDATE checkpoints SET note = replace(note, $1, $2) WHERE size = 26", "\n26\n", "\n25\n")
		}, ledger.CodeCheckpointBad, 2, 1},
		{"checkpoint removed", func(t *testing.T, b *bench, s sample) { b.sql(t, "DELETE FROM checkpoints WHERE size = 26") }, ledger.CodeCheckpointBad, 0, 1},
		{"certificate row by hand", func(t *testing.T, b *bench, s sample) {
			b.sql(t, "INSERT INTO certificates VALUES ($1, 99, 'go', '.', 'u', 's', 'd', 'T', 't')", string(evidence.DigestOf(nil)))
		}, ledger.CodeProjection, 0, 26},
		{"certificate row edited", func(t *testing.T, b *bench, s sample) {
			b.sql(t, "UPDATE certificates SET symbol = 'other'")
		}, ledger.CodeProjection, 0, 26},
		{"certificate row moved", func(t *testing.T, b *bench, s sample) {
			b.sql(t, "UPDATE certificates SET seq = -9")
		}, ledger.CodeProjection, 0, 26},
		{"run row removed", func(t *testing.T, b *bench, s sample) { b.sql(t, "DELETE FROM runs WHERE seq = 4") }, ledger.CodeProjection, 0, 26},
		{"measurement row edited", func(t *testing.T, b *bench, s sample) { b.sql(t, "UPDATE measurements SET word = 'refuted'") }, ledger.CodeProjection, 0, 26},
		{"waiver row edited", func(t *testing.T, b *bench, s sample) { b.sql(t, "UPDATE waivers SET until = '2099-01-01T00:00:00Z'") }, ledger.CodeProjection, 0, 26},
		{"start row edited", func(t *testing.T, b *bench, s sample) { b.sql(t, "UPDATE starts SET repo = '/other'") }, ledger.CodeProjection, 0, 26},
		{"probe row edited", func(t *testing.T, b *bench, s sample) { b.sql(t, "UPDATE probes SET symbol = 'other'") }, ledger.CodeProjection, 0, 26},
		{"blob removed", func(t *testing.T, b *bench, s sample) {
			if err := b.blobs.Remove(s.runs[4].Run.Record().Stdout.Digest); err != nil {
				t.Fatal(err)
			}
		}, ledger.CodeMissing, 0, 26},
		{"events removed", func(t *testing.T, b *bench, s sample) {
			if err := b.blobs.Remove(s.runs[4].Run.Record().Events); err != nil {
				t.Fatal(err)
			}
			_, err := b.Certificate(t.Context(), s.cert.Digest())
			wantFault(t, err, fault.NotFound, ledger.CodeMissing)
		}, ledger.CodeMissing, 0, 26},
		{"blob swapped", func(t *testing.T, b *bench, s sample) {
			b.overwrite(t, s.runs[4].Run.Record().Stdout.Digest, []byte("another output"))
		}, ledger.CodeBlobBad, 0, 26},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, c store.Config) {
				b := setup(t, c)
				s := b.fill(t, 0)
				if b.db.Dialect() == store.SQLite { // our own checks, not those of the database
					b.sqlNoRows(t, "PRAGMA ignore_check_constraints = 1")
				}
				test.tamper(t, b, s)
				r, err := b.Verify(t.Context(), ledger.Options{})
				wantFault(t, err, fault.Tampered, test.code)
				if r.FirstBad != test.bad || r.Sound != test.sound {
					t.Errorf("first bad %d, sound to %d, want %d and %d; findings %+v", r.FirstBad, r.Sound, test.bad, test.sound, r.Findings)
				}
			})
		})
	}
}

func (b *bench) sqlNoRows(t testing.TB, text string) {
	t.Helper()
	if _, err := b.db.SQL().ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) overwrite(t testing.TB, d evidence.Digest, bytes []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.blobs.Dir(), d.Hex()[:2], d.Hex()[2:]), bytes, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Somebody with the engine key and our code can append what hashes and signs
// right. The constructors still derive another verdict.
func TestHandMadeVerdictsAreFound(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		make func(t *testing.T, s sample) ledger.Draft
		code fault.Code
	}{
		{"verdict without runs", func(t *testing.T, s sample) ledger.Draft {
			rec := s.cert.Record()
			rec.Runs.Kill, rec.Runs.Repeat = evidence.DigestOf([]byte("a")), evidence.DigestOf([]byte("b"))
			return ledger.ForgedDraft(ledger.KindCertificate, rec)
		}, ledger.CodeCertificateBad},
		{"green runs as kills", func(t *testing.T, s sample) ledger.Draft {
			rec := s.cert.Record()
			rec.Runs.Kill = s.runs[5].Run.Digest()
			return ledger.ForgedDraft(ledger.KindCertificate, rec)
		}, ledger.CodeCertificateBad},
		{"another symbol", func(t *testing.T, s sample) ledger.Draft {
			rec := s.cert.Record()
			rec.Facts.Symbol, rec.Facts.Probe.Symbol = "other", "other"
			return ledger.ForgedDraft(ledger.KindCertificate, rec)
		}, ledger.CodeCertificateBad},
		{"measurement that says proven", func(t *testing.T, s sample) ledger.Draft {
			rec := s.mea.Record()
			rec.Trials[0].Run = s.runs[5].Run.Digest()
			return ledger.ForgedDraft(ledger.KindMeasurement, rec)
		}, ledger.CodeCertificateBad},
		{"measurement with a certificate that is not there", func(t *testing.T, s sample) ledger.Draft {
			p := s.cert.Record().Facts.Probe
			m, err := evidence.NewMeasurement(s.mea.Record().Target, tree, []evidence.Trial{
				{Probe: p, Run: s.runs[4].Run, Certificate: evidence.DigestOf([]byte("none"))},
			}, "", "")
			if err != nil {
				t.Fatal(err)
			}
			return ledger.MeasurementDraft(m)
		}, ledger.CodeCertificateBad},
		{"waiver with another's signature", func(t *testing.T, s sample) ledger.Draft {
			return ledger.ForgedDraft(ledger.KindWaiver, ledger.Waiver{Probe: s.cert.Record().Facts.Probe.Digest(), Reason: "r"})
		}, ledger.CodeSignatureBad},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, storetest.SQLite(t))
			s := b.fill(t, 0)
			err := b.db.Write(t.Context(), func(tx *store.Tx) error {
				return b.AppendUnchecked(t.Context(), tx, test.make(t, s))
			})
			if err != nil {
				t.Fatal(err)
			}
			r, err := b.Verify(t.Context(), ledger.Options{})
			wantFault(t, err, fault.Tampered, test.code)
			if len(r.Findings) != 1 || r.Findings[0].Seq != 27 {
				t.Errorf("findings = %+v, want one, about entry 27", r.Findings)
			}
		})
	}
}

func TestAnchorShowsRollBackAndFork(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	b.fill(t, 0)
	old := b.copyState(t)
	note := must[ledger.Draft](t)(ledger.NewDraft("test.note", "mine"))
	b.append(t, note, note)
	var ref string
	var kept []byte
	a, err := b.Anchor(t.Context(), func(r string, c []byte) error { ref, kept = r, c; return nil })
	if err != nil || ref != "refs/proveto/anchor/"+b.ID() || !bytes.Equal(kept, a.Checkpoint) || a.Head.Seq != 28 {
		t.Fatalf("Anchor = %+v, %v, ref %s", a, err, ref)
	}
	b.append(t, note)
	if r := wantSound(t, b, ledger.Options{Anchor: kept, Expect: &a.Head}); r.Outside != "anchor" {
		t.Errorf("outside = %s, want anchor", r.Outside)
	}

	// The old copy is sound in itself, and says that nothing outside vouches for it.
	if r := wantSound(t, old, ledger.Options{}); r.Outside != "none" {
		t.Errorf("outside = %s, want none", r.Outside)
	}
	_, err = old.Verify(t.Context(), ledger.Options{Anchor: kept})
	wantFault(t, err, fault.Tampered, ledger.CodeRolledBack)
	_, err = old.Verify(t.Context(), ledger.Options{Expect: &a.Head})
	wantFault(t, err, fault.Tampered, ledger.CodeRolledBack)

	// Two histories from one point.
	other := must[ledger.Draft](t)(ledger.NewDraft("test.note", "theirs"))
	old.append(t, other, other, other)
	_, err = old.Verify(t.Context(), ledger.Options{Anchor: kept})
	wantFault(t, err, fault.Tampered, ledger.CodeRolledBack)
	_, err = old.Verify(t.Context(), ledger.Options{Anchor: bytes.Replace(kept, fmt.Appendf(nil, "\n%d\n", a.Head.Seq), fmt.Appendf(nil, "\n%d\n", a.Head.Seq-1), 1)})
	wantFault(t, err, fault.Tampered, ledger.CodeCheckpointBad)
	wantSound(t, old, ledger.Options{})
}

// copyState is a second ledger with the same history, keys and blobs.
func (b *bench) copyState(t testing.TB) *bench {
	t.Helper()
	c := &bench{state: t.TempDir(), config: storetest.SQLite(t)}
	if err := os.CopyFS(c.state, os.DirFS(b.state)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(c.state, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			err = os.Chmod(p, 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.sqlNoRows(t, "VACUUM INTO '"+c.config.Path+"'")
	c.open(t)
	return c
}

// answers is everything the ledger says.
func (b *bench) answers(t *testing.T, s sample) (string, error) {
	t.Helper()
	ctx := t.Context()
	type answer struct {
		Value any
		Err   string
	}
	var out []answer
	add := func(v any, err error) {
		a := answer{Value: v}
		if err != nil {
			a.Err = err.Error()
		}
		out = append(out, a)
	}
	es, err := b.Entries(ctx, 1, 0, "")
	add(es, err)
	h, err := b.Head(ctx)
	add(h, err)
	cs, err := b.CertificatesFor(ctx, "go", ".")
	add(cs, err)
	ms, err := b.MeasurementsFor(ctx, "go", ".")
	add(ms, err)
	ws, err := b.Waivers(ctx)
	add(ws, err)
	st, err := b.LastStart(ctx, "/r")
	add(st, err)
	for _, r := range s.runs {
		run, err := b.Run(ctx, r.Run.Digest())
		add([]any{run.Record(), run.Events()}, err)
	}
	c, err := b.Certificate(ctx, s.cert.Digest())
	add(c.Record(), err)
	ref, err := b.Resolve(ctx, s.cert.Digest().Hex()[:8])
	add(ref, err)
	text, err := json.MarshalIndent(out, "", " ")
	return string(text), err
}

// damages is how many bytes are damaged. A suite that is itself probed runs
// hundreds of times, and each of its runs damages a tenth of them.
func damages() int {
	if testing.Short() || os.Getenv("PROVETO_TEST_PROBED") != "" {
		return 20
	}
	return 200
}

// One byte of the database file is changed. Verify says so, unless the byte
// changes nothing that the ledger says.
func TestDamagedBytesOfTheFile(t *testing.T) {
	t.Parallel()
	rounds := damages()
	b := setup(t, storetest.SQLite(t))
	var s sample
	for n := range 3 {
		s = b.fill(t, n)
	}
	want := must[string](t)(b.answers(t, s))
	base := filepath.Join(t.TempDir(), store.FileName)
	b.sqlNoRows(t, "VACUUM INTO '"+base+"'")
	// As our own process leaves it: in WAL mode, so that opening it writes nothing.
	if err := must[*store.DB](t)(store.Open(t.Context(), store.Config{Path: base})).Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.New(rand.NewPCG(1, 2))
	var found, silent atomic.Int64
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8) // they wait for the disk more than they compute
	for range rounds {
		at, bit := seed.IntN(len(whole)), byte(1)<<seed.IntN(8)
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			damaged := bytes.Clone(whole)
			damaged[at] ^= bit
			got, err := b.onFile(t, damaged, s)
			if err != nil {
				found.Add(1)
				if f := fault.From(err); f.Kind == fault.Internal && f.Code == "internal" {
					t.Errorf("byte %d bit %d: %v has no code", at, bit, err)
				}
				return
			}
			silent.Add(1)
			if got != want {
				t.Errorf("byte %d bit %d changes an answer and was not found:\n%s", at, bit, cmp.Diff(want, got))
			}
		})
	}
	wg.Wait()
	if int(found.Load()) < rounds/4 {
		t.Errorf("%d of %d damages found: the test looks at the wrong bytes", found.Load(), rounds)
	}
	t.Logf("%d found, %d change nothing", found.Load(), silent.Load())
}

// onFile verifies a ledger in a file with these bytes, and asks it everything
// when it verifies.
func (b *bench) onFile(t *testing.T, file []byte, s sample) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), store.FileName)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Error(err)
		return "", err
	}
	db, err := store.Open(t.Context(), store.Config{Path: path})
	if err != nil {
		return "", err
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Log(err) // of a damaged file
		}
	}()
	l, err := ledger.Open(t.Context(), db, b.blobs, b.keys.Engine)
	if err != nil {
		return "", err
	}
	if _, err := l.Verify(t.Context(), ledger.Options{}); err != nil {
		return "", err
	}
	c := *b
	c.db, c.Ledger = db, l
	return c.answers(t, s)
}

// One byte of a value that the ledger wrote is changed: that is always found.
func TestDamagedBytesOfValues(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.SQLite(t))
	for n := range 3 {
		b.fill(t, n)
	}
	columns := map[string][]string{
		"entries": {"time", "kind", "body", "body", "body", "leaf_hash"}, "tree_hashes": {"hash"}, "checkpoints": {"note"},
		"runs":         {"digest", "purpose", "snapshot", "started"},
		"certificates": {"digest", "language", "project", "unit", "symbol", "symbol_digest", "test", "snapshot"},
		"measurements": {"digest", "language", "project", "symbol", "inputs", "word"},
		"probes":       {"digest", "symbol"}, "waivers": {"probe", "reason", "until", "principal"},
		"starts": {"run_key", "invocation", "result", "tree", "repo"},
	}
	seed := rand.New(rand.NewPCG(3, 4))
	pick := func(n int) int { return seed.IntN(n) }
	tables := []string{"entries", "entries", "entries", "tree_hashes", "checkpoints", "runs", "certificates", "measurements", "probes", "waivers", "starts"}
	for range damages() {
		table := tables[pick(len(tables))]
		column := columns[table][pick(len(columns[table]))]
		var n int
		if err := b.db.SQL().QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		var row int64
		var old string
		if err := b.db.SQL().QueryRow("SELECT rowid, "+column+" FROM "+table+" ORDER BY rowid LIMIT 1 OFFSET $1", pick(n)).Scan(&row, &old); err != nil {
			t.Fatal(err)
		}
		changed := []byte(old)
		changed[pick(len(changed))] ^= byte(1) << pick(7)
		b.sql(t, "UPDATE "+table+" SET "+column+" = $1 WHERE rowid = $2", string(changed), row)
		if r, err := b.Verify(t.Context(), ledger.Options{}); fault.From(err) == nil || fault.From(err).Kind != fault.Tampered {
			t.Errorf("%s.%s: %q for %q gave %v, %+v", table, column, changed, old, err, r.Findings)
		}
		b.sql(t, "UPDATE "+table+" SET "+column+" = $1 WHERE rowid = $2", old, row)
	}
	err := b.blobs.Walk(t.Context(), func(d evidence.Digest) error {
		old, err := b.blobs.Get(d)
		if err != nil {
			return err
		}
		changed := bytes.Clone(old)
		changed[pick(len(changed))] ^= byte(1) << pick(8)
		b.overwrite(t, d, changed)
		_, err = b.Verify(t.Context(), ledger.Options{})
		wantFault(t, err, fault.Tampered, ledger.CodeBlobBad)
		b.overwrite(t, d, old)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantSound(t, b, ledger.Options{})
}

const appendForever = "PROVETO_TEST_APPEND"

// TestMain lets the test binary be a process that appends until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(appendForever); dir != "" {
		fmt.Fprintln(os.Stderr, appendTo(dir, os.Getenv(appendForever+"_URL")))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// appendTo appends without end and prints the number of every acknowledged entry.
func appendTo(dir, url string) error {
	ctx := context.Background()
	c := store.Config{DatabaseURL: url}
	if url == "" {
		c.Path = filepath.Join(dir, store.FileName)
	}
	db, err := store.Open(ctx, c)
	if err != nil {
		return err
	}
	blobs, err := blob.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		return err
	}
	keys, err := identity.Open(dir)
	if err != nil {
		return err
	}
	l, err := ledger.Open(ctx, db, blobs, keys.Engine)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		out := fmt.Appendf(nil, "output %d of %d", i, os.Getpid())
		r, err := evidence.RecordRun(evidence.RunRecord{
			Purpose: evidence.PurposeTool, Argv: []string{"x"}, Nonce: fmt.Sprint(os.Getpid(), i),
			Stdout: evidence.Output{Digest: evidence.DigestOf(out), Bytes: int64(len(out))},
		}, []evidence.Event{{Kind: evidence.EventEnd}})
		if err != nil {
			return err
		}
		if err := l.KeepRun(ctx, r, out, nil); err != nil {
			return err
		}
		var es []ledger.Entry
		err = db.Write(ctx, func(tx *store.Tx) (err error) {
			es, err = l.Append(ctx, tx, ledger.RunDraft(r))
			return err
		})
		if err != nil {
			return err
		}
		fmt.Println(es[0].Seq, r.Digest())
	}
}

func TestKilledProcessesLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		b := &bench{config: c, state: t.TempDir()}
		if c.Path != "" {
			b.config.Path = filepath.Join(b.state, store.FileName)
		}
		acknowledged := map[evidence.Digest]int64{}
		for round := range 4 {
			// Two at once: killing one must not harm the other.
			var cmds []*exec.Cmd
			var outs []*bufio.Scanner
			for range 2 {
				cmd := exec.Command(os.Args[0], "-test.run=^$")
				cmd.Env = append(os.Environ(), appendForever+"="+b.state, appendForever+"_URL="+c.DatabaseURL)
				cmd.Stderr = os.Stderr
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				cmds, outs = append(cmds, cmd), append(outs, bufio.NewScanner(out))
			}
			read := func(s *bufio.Scanner) bool {
				if !s.Scan() {
					return false
				}
				seq, digest, ok := strings.Cut(s.Text(), " ")
				n, err := strconv.ParseInt(seq, 10, 64)
				if !ok || err != nil {
					return false // half a line: not acknowledged
				}
				acknowledged[evidence.Digest(digest)] = n
				return true
			}
			for range 5 + 3*round {
				for _, s := range outs {
					if !read(s) {
						t.Fatalf("a process ended by itself: %v", s.Err())
					}
				}
			}
			for i, cmd := range cmds {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				for read(outs[i]) {
				}
				var ee *exec.ExitError
				if err := cmd.Wait(); !errors.As(err, &ee) {
					t.Fatalf("killed process: %v", err)
				}
			}
		}
		b.open(t)
		r := wantSound(t, b, ledger.Options{})
		if int(r.Entries) < 1+len(acknowledged) || len(acknowledged) < 40 {
			t.Errorf("%d entries for %d acknowledged", r.Entries, len(acknowledged))
		}
		for d, seq := range acknowledged {
			es, err := b.Entries(t.Context(), seq, seq, ledger.KindRun)
			if err != nil || len(es) != 1 || evidence.DigestOf(es[0].Body) != d {
				t.Errorf("acknowledged run %s is not entry %d: %v, %v", d.Short(), seq, es, err)
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, per := range []int{1, 100, 1000} {
		b.Run(strconv.Itoa(per), func(b *testing.B) {
			l := setup(b, storetest.SQLite(b))
			s := makeSample(b, 1)
			if err := l.KeepRuns(b.Context(), s.runs...); err != nil {
				b.Fatal(err)
			}
			ds := make([]ledger.Draft, per)
			for b.Loop() {
				for i := range ds {
					rec := s.runs[0].Run.Record()
					rec.Nonce = strconv.Itoa(rand.Int())
					r, err := evidence.RecordRun(rec, s.runs[0].Run.Events())
					if err != nil {
						b.Fatal(err)
					}
					ds[i] = ledger.RunDraft(r)
				}
				l.append(b, ds...)
			}
			b.ReportMetric(float64(b.N*per)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

func BenchmarkVerify10000(b *testing.B) {
	l := setup(b, storetest.SQLite(b))
	for n := 0; n < 10000/9; n++ {
		l.fill(b, n+1)
	}
	b.ResetTimer()
	for range b.N {
		r, err := l.Verify(b.Context(), ledger.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Entries), "entries")
	}
}

// What was not signed is never built upon: the next append would sign it.
func TestNothingIsAppendedToATamperedTail(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"tail removed":     "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)",
		"hash edited":      "UPDATE tree_hashes SET hash = (SELECT hash FROM tree_hashes WHERE idx = 0) WHERE idx = (SELECT max(idx) FROM tree_hashes)",
		"older checkpoint": "DELETE FROM checkpoints WHERE size = (SELECT max(size) FROM checkpoints)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, storetest.SQLite(t))
			b.fill(t, 0)
			d := must[ledger.Draft](t)(ledger.NewDraft("test.note", 1))
			b.sql(t, change)
			err := b.db.Write(t.Context(), func(tx *store.Tx) error {
				_, err := b.Append(t.Context(), tx, d)
				return err
			})
			wantFault(t, err, fault.Tampered, ledger.CodeBroken)
		})
	}
}
