package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/store"
	"github.com/proveto/proveto/internal/store/storetest"
)

func wantFault(t *testing.T, err error, kind fault.Kind, code fault.Code) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Kind != kind || f.Code != code {
		t.Errorf("error = %v, want %s/%s", err, kind, code)
	}
}

func write(t *testing.T, db *store.DB, fn func(*store.Tx) error) {
	t.Helper()
	if err := db.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, db *store.DB, fn func(*store.Tx) error) {
	t.Helper()
	if err := db.Read(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func entry(seq int64) store.EntryRow {
	return store.EntryRow{Seq: seq, Time: "2026-01-02T03:04:05Z", Kind: "run", Body: fmt.Sprintf(`{"n":%d,"nul":"\u0000"}`, seq), LeafHash: "h"}
}

func TestEveryStatementPrepares(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		names := store.QueryNames()
		if len(names) < 40 {
			t.Fatalf("%d statements found, want the files of sql/", len(names))
		}
		for _, name := range names {
			write(t, db, func(tx *store.Tx) error {
				s, err := tx.SQL().PrepareContext(t.Context(), store.QueryText(name))
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return nil
				}
				return s.Close()
			})
		}
	})
}

func TestRowsComeBackAsWritten(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		want := store.Rows{
			Runs:         []store.RunRow{{Digest: "sha256:aa", Seq: 1, Purpose: "probe", Snapshot: "t", Started: "s"}},
			Certificates: []store.CertificateRow{{Digest: "sha256:ab", Seq: 2, Language: "go", Project: ".", Unit: "u", Symbol: "s", SymbolDigest: "d", Test: "T", Snapshot: "t"}},
			Measurements: []store.MeasurementRow{{Seq: 3, Digest: "sha256:ac", Language: "go", Project: ".", Symbol: "s", Inputs: "i", Word: "proven", Reason: ""}},
			Probes:       []store.ProbeRow{{Digest: "sha256:ad", Seq: 3, Symbol: "s"}, {Digest: "sha256:ae", Seq: 3, Symbol: "s"}},
			Waivers:      []store.WaiverRow{{Probe: "sha256:ad", Seq: 4, Reason: "r", Until: "u", Principal: "p"}},
			Starts:       []store.StartRow{{Seq: 5, RunKey: "k", Invocation: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Result: "r", Tree: "t", Repo: "/r"}},
		}
		write(t, db, func(tx *store.Tx) error {
			for seq := range int64(5) {
				if err := tx.InsertEntry(t.Context(), entry(seq+1)); err != nil {
					return err
				}
			}
			return tx.InsertRows(t.Context(), want)
		})
		var got store.Rows
		var found []store.Found
		var invocations []string
		var entries, certs, latest []store.EntryRow
		read(t, db, func(tx *store.Tx) (err error) {
			ctx := t.Context()
			var errs [10]error
			got.Runs, errs[0] = tx.Runs(ctx, 0, 9)
			got.Certificates, errs[1] = tx.Certificates(ctx, 1, 9)
			got.Measurements, errs[2] = tx.Measurements(ctx, 2, 9)
			got.Probes, errs[3] = tx.Probes(ctx, 3, "", 9)
			got.Waivers, errs[4] = tx.Waivers(ctx, 3, 9)
			got.Starts, errs[5] = tx.Starts(ctx, 4, 9)
			found, errs[6] = tx.DigestsBetween(ctx, "sha256:a", "sha256:ag", 9)
			invocations, errs[7] = tx.InvocationsEnding(ctx, "Q69G5FAV", 9)
			certs, errs[8] = tx.CertificateEntries(ctx, "go", ".")
			latest, errs[9] = tx.MeasurementEntries(ctx, "go", ".")
			entries, err = tx.Entries(ctx, "run", 1, 4, 2)
			return errors.Join(append(errs[:], err)...)
		})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("rows (-written +read):\n%s", d)
		}
		wantFound := []store.Found{
			{What: "certificate", Digest: "sha256:ab"},
			{What: "run", Digest: "sha256:aa"},
			{What: "measurement", Digest: "sha256:ac"},
			{What: "probe", Digest: "sha256:ad"},
			{What: "probe", Digest: "sha256:ae"},
		}
		if d := cmp.Diff(wantFound, found); d != "" {
			t.Errorf("DigestsBetween:\n%s", d)
		}
		if d := cmp.Diff([]string{want.Starts[0].Invocation}, invocations); d != "" {
			t.Errorf("InvocationsEnding:\n%s", d)
		}
		if d := cmp.Diff([]store.EntryRow{entry(2), entry(3)}, entries); d != "" {
			t.Errorf("Entries:\n%s", d)
		}
		if d := cmp.Diff([][]store.EntryRow{{entry(2)}, {entry(3)}}, [][]store.EntryRow{certs, latest}); d != "" {
			t.Errorf("certificates, latest measurements:\n%s", d)
		}
	})
}

func TestFlowRowsComeBackAsWritten(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		run := func(id string, seq int64, project, repo string) store.FlowRunRow {
			return store.FlowRunRow{
				Run: id, OpenedSeq: seq, LastSeq: seq, Opened: seq * 10, Updated: seq * 10, Project: project, Repo: repo, Target: "t", Status: "open",
				Reason: "r", CurrentStage: "planner", Needs: `["a"]`, Expires: "e", Task: "task",
			}
		}
		a, b := run("run_AAAAAA1", 1, "p", "/a"), run("run_BBBBBB1", 2, "q", "/b")
		entries := []store.FlowEntryRow{
			{Seq: 1, Run: a.Run, Kind: "flow.opened", Idem: "k"}, {Seq: 2, Run: b.Run, Kind: "flow.opened"}, {Seq: 3, Run: a.Run, Kind: "flow.taken", Stage: "planner", Idem: "k2"}, {Seq: 4, Kind: "principal.added"},
		}
		moved := store.FlowRunRow{Run: a.Run, LastSeq: 3, Updated: 30, Repo: "/a2", Target: "t2", Status: "waiting", Reason: "r2", CurrentStage: "developer", Needs: "[]", Expires: "e2"}
		write(t, db, func(tx *store.Tx) error {
			for seq := range int64(4) {
				if err := tx.InsertEntry(t.Context(), entry(seq+1)); err != nil {
					return err
				}
			}
			return tx.InsertRows(t.Context(), store.Rows{FlowEntries: entries, FlowOpened: []store.FlowRunRow{a, b}, FlowMoved: []store.FlowRunRow{moved}})
		})
		want := a.Move(moved)
		if want.OpenedSeq != 1 || want.Project != "p" || want.Task != "task" || want.Status != "waiting" {
			t.Errorf("Move = %+v", want)
		}
		read(t, db, func(tx *store.Tx) error {
			ctx := t.Context()
			for _, x := range []struct {
				f    store.FlowRunFilter
				want []store.FlowRunRow
			}{
				{store.FlowRunFilter{Limit: 9}, []store.FlowRunRow{want, b}},
				{store.FlowRunFilter{Limit: 1}, []store.FlowRunRow{want}},
				{store.FlowRunFilter{Limit: 9, Before: 3}, []store.FlowRunRow{b}},
				{store.FlowRunFilter{Limit: 9, Since: 21}, []store.FlowRunRow{want}},
				{store.FlowRunFilter{Limit: 9, Status: "open"}, []store.FlowRunRow{b}},
				{store.FlowRunFilter{Limit: 9, Project: "p"}, []store.FlowRunRow{want}},
				{store.FlowRunFilter{Limit: 9, Project: "p", Status: "open"}, nil},
				{store.FlowRunFilter{Limit: 9, Project: "q", Status: "open"}, []store.FlowRunRow{b}},
			} {
				got, err := tx.FlowRuns(ctx, x.f)
				if d := cmp.Diff(x.want, got); d != "" || err != nil {
					t.Errorf("FlowRuns(%+v): %v\n%s", x.f, err, d)
				}
			}
			got, err := tx.FlowEntries(ctx, a.Run, 0, 9)
			if d := cmp.Diff([]store.EntryRow{entry(1), entry(3)}, got); d != "" || err != nil {
				t.Errorf("FlowEntries: %v\n%s", err, d)
			}
			got, err = tx.FlowEntries(ctx, a.Run, 1, 9)
			if d := cmp.Diff([]store.EntryRow{entry(3)}, got); d != "" || err != nil {
				t.Errorf("FlowEntries after 1: %v\n%s", err, d)
			}
			rows, err := tx.FlowEntryRows(ctx, 1, 9)
			if d := cmp.Diff(entries[1:], rows); d != "" || err != nil {
				t.Errorf("FlowEntryRows: %v\n%s", err, d)
			}
			for _, x := range []struct {
				run, idem string
				want      int64
			}{{a.Run, "k2", 3}, {"", "k", 1}, {b.Run, "k", 0}, {"", "k2", 0}} {
				if seq, err := tx.FlowIdemSeq(ctx, x.run, x.idem); seq != x.want || errors.Is(err, store.ErrNoRow) != (x.want == 0) {
					t.Errorf("FlowIdemSeq(%s, %s) = %d, %v, want %d", x.run, x.idem, seq, err, x.want)
				}
			}
			for _, x := range []struct{ repo, want string }{{"", b.Run}, {"/a2", a.Run}, {"/b", b.Run}} {
				if r, err := tx.LatestFlowRun(ctx, x.repo); err != nil || r.Run != x.want {
					t.Errorf("LatestFlowRun(%s) = %s, %v", x.repo, r.Run, err)
				}
			}
			if _, err := tx.FlowRun(ctx, "run_none"); !errors.Is(err, store.ErrNoRow) {
				t.Errorf("FlowRun of none = %v", err)
			}
			ids, err := tx.FlowRunsEnding(ctx, "1", 9)
			if d := cmp.Diff([]string{a.Run, b.Run}, ids); d != "" || err != nil {
				t.Errorf("FlowRunsEnding: %v\n%s", err, d)
			}
			return nil
		})
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			return tx.InsertRows(t.Context(), store.Rows{FlowMoved: []store.FlowRunRow{{Run: "run_none"}}})
		})
		if !errors.Is(err, store.ErrNoRow) {
			t.Errorf("moving no run = %v, want ErrNoRow", err)
		}
		err = db.Write(t.Context(), func(tx *store.Tx) error {
			return tx.InsertRows(t.Context(), store.Rows{FlowEntries: []store.FlowEntryRow{{Seq: 9, Run: a.Run, Kind: "flow.taken", Idem: "k2"}}})
		})
		wantFault(t, err, fault.Conflict, store.CodeConflict)
		write(t, db, func(tx *store.Tx) error { return tx.ClearProjections(t.Context()) })
		read(t, db, func(tx *store.Tx) error {
			runs, err := tx.FlowRuns(t.Context(), store.FlowRunFilter{Limit: 9})
			rows, err2 := tx.FlowEntryRows(t.Context(), 0, 9)
			if len(runs)+len(rows) != 0 {
				t.Errorf("%d runs and %d entries left", len(runs), len(rows))
			}
			return errors.Join(err, err2)
		})
	})
}

func TestWriteIsAllOrNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		stop := errors.New("stop")
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			if err := tx.InsertEntry(t.Context(), entry(1)); err != nil {
				return err
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Errorf("Write = %v, want the error of fn", err)
		}
		write(t, db, func(tx *store.Tx) error { return tx.InsertEntry(t.Context(), entry(1)) })
		err = db.Write(t.Context(), func(tx *store.Tx) error { return tx.InsertEntry(t.Context(), entry(1)) })
		wantFault(t, err, fault.Conflict, store.CodeConflict)
		err = db.Read(t.Context(), func(tx *store.Tx) error { return tx.InsertEntry(t.Context(), entry(2)) })
		if err == nil {
			t.Error("a read transaction wrote an entry")
		}
		read(t, db, func(tx *store.Tx) error {
			if n, err := tx.LastSeq(t.Context()); n != 1 || err != nil {
				t.Errorf("LastSeq = %d, %v, want 1", n, err)
			}
			_, err := tx.Entry(t.Context(), 2)
			if !errors.Is(err, store.ErrNoRow) {
				t.Errorf("Entry(2) = %v, want ErrNoRow", err)
			}
			return nil
		})
	})
}

// Every writer reads the last number and adds the next: with two handles, as two
// processes have, none may see an old state.
func TestWritersAreOneAfterTheOther(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		const each = 25
		handles := []*store.DB{storetest.Open(t, c), storetest.Open(t, c)}
		var wg sync.WaitGroup
		for _, db := range handles {
			for range 2 {
				wg.Go(func() {
					for range each {
						err := db.Write(t.Context(), func(tx *store.Tx) error {
							n, err := tx.LastSeq(t.Context())
							if err != nil {
								return err
							}
							return tx.InsertEntry(t.Context(), entry(n+1))
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		read(t, handles[0], func(tx *store.Tx) error {
			if n, err := tx.LastSeq(t.Context()); n != 4*each || err != nil {
				t.Errorf("LastSeq = %d, %v, want %d", n, err, 4*each)
			}
			return nil
		})
	})
}

func TestReadSeesOneState(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		write(t, db, func(tx *store.Tx) error { return tx.InsertEntry(t.Context(), entry(1)) })
		read(t, db, func(tx *store.Tx) error {
			before, err := tx.LastSeq(t.Context())
			if err != nil {
				return err
			}
			write(t, db, func(tx *store.Tx) error { return tx.InsertEntry(t.Context(), entry(2)) })
			after, err := tx.LastSeq(t.Context())
			if before != after {
				t.Errorf("LastSeq = %d, then %d in the same read", before, after)
			}
			return err
		})
	})
}

func TestCancelledWriteRecordsNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		err := db.Write(ctx, func(tx *store.Tx) error {
			cancel()
			return tx.InsertEntry(ctx, entry(1))
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Write = %v, want cancelled", err)
		}
		write(t, db, func(tx *store.Tx) error { return tx.InsertEntry(t.Context(), entry(1)) })
	})
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		write(t, db, func(tx *store.Tx) error {
			return tx.SetMeta(t.Context(), "schema", fmt.Sprint(store.SchemaVersion+1))
		})
		_, err := store.Open(t.Context(), c)
		wantFault(t, err, fault.Refused, store.CodeStateNewer)
	})
}

func TestMigrationsMatchTheSchemaVersion(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("sql/migrations/*.sql")
	if err != nil || len(files) != store.SchemaVersion {
		t.Errorf("%d migrations, %v, want %d", len(files), err, store.SchemaVersion)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"BLOB", "BYTEA", "JSON ", "JSONB", "SERIAL", "INTEGER", "TIMESTAMP"} {
			if strings.Contains(strings.ToUpper(string(b)), word) {
				t.Errorf("%s uses %s: TEXT and BIGINT only", f, word)
			}
		}
	}
}

func TestTheFileIsPrivateAndDurable(t *testing.T) {
	t.Parallel()
	c := storetest.SQLite(t)
	db := storetest.Open(t, c)
	for _, name := range []string{c.Path, c.Path + "-wal"} {
		fi, err := os.Stat(name)
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", name, fi, err)
		}
	}
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1", "busy_timeout": "10000"} {
		var got string
		if err := db.SQL().QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("PRAGMA %s = %q, %v, want %s", pragma, got, err, want)
		}
	}
}

func TestOddPathsAndLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	odd := filepath.Join(dir, "a b?mode=memory&x=%41#.db")
	storetest.Open(t, store.Config{Path: odd})
	if fi, err := os.Stat(odd); err != nil || fi.Size() == 0 {
		t.Errorf("%s: %v, %v, want the database", odd, fi, err)
	}
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(odd, link); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), store.Config{Path: link})
	wantFault(t, err, fault.Refused, store.CodeIO)
	_, err = store.Open(t.Context(), store.Config{Path: filepath.Join(dir, "none", "x.db")})
	wantFault(t, err, fault.Internal, store.CodeIO)
	_, err = store.Open(t.Context(), store.Config{DatabaseURL: "mysql://x"})
	wantFault(t, err, fault.Usage, "usage")
	_, err = store.Open(t.Context(), store.Config{})
	wantFault(t, err, fault.Usage, "usage")
}

func TestLostTableIsTampering(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		if _, err := db.SQL().ExecContext(t.Context(), "DROP TABLE entries"); err != nil {
			t.Fatal(err)
		}
		err := db.Read(t.Context(), func(tx *store.Tx) error { _, err := tx.LastSeq(t.Context()); return err })
		wantFault(t, err, fault.Tampered, store.CodeBroken)
	})
}

func TestWrongTypeIsTampering(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	write(t, db, func(tx *store.Tx) error {
		return tx.InsertCheckpoint(t.Context(), store.CheckpointRow{Size: 1, Note: "n"})
	})
	if _, err := db.SQL().ExecContext(t.Context(), "UPDATE checkpoints SET size = 'many'"); err != nil {
		t.Fatal(err)
	}
	err := db.Read(t.Context(), func(tx *store.Tx) error { _, err := tx.LastCheckpoint(t.Context()); return err })
	wantFault(t, err, fault.Tampered, store.CodeBroken)
}

func TestFullDiskIsNoSpace(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	if _, err := db.SQL().ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil {
		t.Fatal(err)
	}
	err := db.Write(t.Context(), func(tx *store.Tx) error {
		e := entry(1)
		e.Body = strings.Repeat("x", 1<<20)
		return tx.InsertEntry(t.Context(), e)
	})
	wantFault(t, err, fault.Internal, store.CodeNoSpace)
	if err != nil && !strings.Contains(err.Error(), store.FileName) {
		t.Errorf("error %q does not name the file", err)
	}
}

func TestDamagedPageIsFound(t *testing.T) {
	t.Parallel()
	c := storetest.SQLite(t)
	db, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	write(t, db, func(tx *store.Tx) error {
		for i := range int64(200) {
			if err := tx.InsertEntry(t.Context(), entry(i+1)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := db.CheckStorage(t.Context()); err != nil {
		t.Errorf("CheckStorage of a sound file: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i+4096 <= len(b); i += 4096 {
		b[i] ^= 0xff // the type of every b-tree page but the first
	}
	if err := os.WriteFile(c.Path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err = store.Open(t.Context(), c)
	if err == nil {
		err = errors.Join(db.CheckStorage(t.Context()), db.Close())
	}
	wantFault(t, err, fault.Tampered, store.CodeBroken)
}

func TestReadOnlyFileIsIO(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	// As root a mode does not protect a file; the connection's own flag does.
	if _, err := db.SQL().ExecContext(t.Context(), "PRAGMA query_only = 1"); err != nil {
		t.Fatal(err)
	}
	err := db.Write(t.Context(), func(tx *store.Tx) error { return tx.SetMeta(t.Context(), "k", "v") })
	wantFault(t, err, fault.Internal, store.CodeIO)
}

func BenchmarkOpen(b *testing.B) {
	c := storetest.SQLite(b)
	for range b.N {
		db, err := store.Open(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
