// Package storetest gives tests a fresh database of either kind: an SQLite file,
// or a database of a private PostgreSQL cluster that lives as long as the test
// process.
//
// The cluster is made from the server binaries of the machine. Where there are
// none, tests on PostgreSQL are skipped, unless the variable CI is set; with
// PROVETO_TEST_PROBED they are skipped always.
package storetest

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/proveto/proveto/internal/store"
)

// Each runs the test once on each kind of database. config is an empty database;
// opening it twice gives two handles on the same data.
func Each(t *testing.T, test func(t *testing.T, config store.Config)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, SQLite(t))
	})
	t.Run("postgresql", func(t *testing.T) {
		t.Parallel()
		test(t, PostgreSQL(t))
	})
}

// Open opens the database and closes it with the test.
func Open(t testing.TB, c store.Config) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// Exec runs statements on a database before it is opened: to lay down what an
// older version wrote.
func Exec(t testing.TB, c store.Config, statements string) {
	t.Helper()
	driver, name := "sqlite", c.Path
	if c.DatabaseURL != "" {
		driver, name = "pgx", c.DatabaseURL
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), statements)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// SQLite is a fresh file.
func SQLite(t testing.TB) store.Config {
	return store.Config{Path: filepath.Join(t.TempDir(), store.FileName)}
}

var (
	cluster   = sync.OnceValues(startCluster)
	databases atomic.Int64
)

var errNoServer = errors.New("no PostgreSQL server binaries on this machine")

// PostgreSQL is a fresh database of the cluster.
func PostgreSQL(t testing.TB) store.Config {
	t.Helper()
	if os.Getenv("PROVETO_TEST_PROBED") != "" {
		t.Skip("a suite that is probed runs on SQLite only")
	}
	base, err := cluster()
	if errors.Is(err, errNoServer) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sql.Open("pgx", base("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("t%d", databases.Add(1))
	_, err = admin.ExecContext(t.Context(), "CREATE DATABASE "+name)
	if err := errors.Join(err, admin.Close()); err != nil {
		t.Fatal(err)
	}
	return store.Config{DatabaseURL: base(name)}
}

// The shell keeps the cluster until the test process closes the pipe, also by
// dying, and then removes it.
const keeper = `
"$1/pg_ctl" -D "$2/data" -l "$2/log" -w -t 60 -o "-c listen_addresses='' -c unix_socket_directories='$2' -c fsync=off -c max_connections=200" start >/dev/null || { cat "$2/log"; exit 1; }
echo ready
cat >/dev/null
"$1/pg_ctl" -D "$2/data" -m immediate stop >/dev/null
rm -rf "$2"
`

func startCluster() (func(database string) string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errNoServer
	}
	slices.Sort(found)
	bin := filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp("/tmp", "proveto-pg-") // a socket's path is short
	if err != nil {
		return nil, err
	}
	attr, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	run := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Dir, c.SysProcAttr = dir, attr
		c.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
		return c
	}
	if out, err := run(filepath.Join(bin, "initdb"), "-D", dir+"/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	keep := run("/bin/sh", "-c", keeper, "sh", bin, dir)
	alive, err := keep.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := keep.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := keep.Start(); err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != "ready" {
		return nil, fmt.Errorf("start PostgreSQL: %q %w", line, errors.Join(err, keep.Wait()))
	}
	return func(database string) string {
		runtime.KeepAlive(alive) // a collected pipe is a closed pipe
		q := url.Values{"host": {dir}, "user": {"postgres"}}
		return "postgres:///" + database + "?" + q.Encode()
	}, nil
}

// unprivileged gives dir to the user postgres (or nobody) when we are root: the
// server refuses to run as root.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	// A group of its own: an interrupt of the terminal reaches the keeper only
	// through the pipe.
	attr := &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(dir, uid, gid)
}
