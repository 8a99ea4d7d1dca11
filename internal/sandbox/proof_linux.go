package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/proveto/proveto/internal/evidence"
)

// trial is what the proving child must try: every one of these is forbidden,
// except the loopback of its own.
type trial struct {
	Name    string   `json:"name"`    // of the files to create
	Dirs    []string `json:"dirs"`    // where to create one
	File    string   `json:"file"`    // to overwrite
	Address string   `json:"address"` // to connect to
}

// finding is what the child could do.
type finding struct {
	Wrote     []string `json:"wrote"`
	Connected bool     `json:"connected"`
	Loopback  bool     `json:"loopback"`
}

// dialLimit bounds one connection attempt of the proof; a refusal is immediate.
const dialLimit = 2 * time.Second

// prove runs in the box: it tries and tells. Success is only that it could tell.
func prove(args []string) int {
	var t trial
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &t) != nil {
		return 64
	}
	f := finding{Wrote: []string{}}
	for _, dir := range t.Dirs {
		path := filepath.Join(dir, t.Name)
		if h, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600); err == nil {
			h.Close()
			f.Wrote = append(f.Wrote, path)
		}
	}
	if h, err := os.OpenFile(t.File, os.O_WRONLY, 0); err == nil {
		if _, err := h.WriteString("escaped"); err == nil {
			f.Wrote = append(f.Wrote, t.File)
		}
		h.Close()
	}
	f.Connected = t.Address != "" && dial(t.Address)
	f.Loopback = loopback()
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		return 1
	}
	return 0
}

func dial(address string) bool {
	c, err := net.DialTimeout("tcp", address, dialLimit)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func loopback() bool {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return false
	}
	defer l.Close()
	return dial(l.Addr().String())
}

// proven makes the child try and returns the isolation that held. An error says
// what did not hold.
func (b *Box) proven(ctx context.Context, level evidence.Level) (evidence.Isolation, error) {
	none := evidence.Isolation{}
	if level == evidence.LimitsOnly {
		return evidence.Isolation{Level: level, Network: evidence.Open}, nil // claims nothing
	}
	dir, err := newDir()
	if err != nil {
		return none, fmt.Errorf("prove the level: %w", err)
	}
	defer func() { _ = removeDir(dir) }() // what stays is swept by the next box
	t := trial{Name: ".proveto-proof-" + rand.Text(), Dirs: b.forbidden(dir), File: filepath.Join(dir, "kept")}
	if err := os.WriteFile(t.File, []byte("kept"), 0o600); err != nil {
		return none, fmt.Errorf("prove the level: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return none, fmt.Errorf("prove the level: %w", err)
	}
	defer l.Close()
	t.Address = l.Addr().String()
	f, err := b.tryAll(ctx, t)
	if err != nil {
		return none, fmt.Errorf("prove the level: %w", err)
	}
	if err := t.escaped(f); err != nil {
		return none, err
	}
	return b.network(level, f)
}

// forbidden lists directories of the machine in which nothing that a command
// writes may stay. Those that are writable walls are allowed, so not among them.
func (b *Box) forbidden(dir string) []string {
	dirs := []string{dir, "/", os.TempDir(), filepath.Dir(b.executable)}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, home)
	}
	dirs = append(append(dirs, b.spec.Sources...), b.spec.Hidden...)
	return slices.DeleteFunc(dirs, func(d string) bool {
		return !filepath.IsAbs(d) || b.allowed(d)
	})
}

// allowed tells whether the innermost wall around dir keeps what is written.
func (b *Box) allowed(dir string) bool {
	var inner wall
	for _, w := range b.walls {
		if within(dir, w.Path) && len(w.Path) >= len(inner.Path) {
			inner = w
		}
	}
	return inner.Kind == wallWritable
}

func (b *Box) tryAll(ctx context.Context, t trial) (finding, error) {
	var f finding
	arg, err := json.Marshal(t)
	if err != nil {
		return f, err
	}
	o := order{
		Argv: []string{"proveto", proofArg, string(arg)}, Dir: "/", Env: b.environment(nil, false), Self: true,
		Limits: evidence.Limits{Wall: 20 * time.Second, OutputBytes: 1 << 20},
	}
	e, out, err := b.execute(ctx, o, nil, nil)
	if err != nil {
		return f, err
	}
	if e.Errno != 0 || e.Error != "" || e.Code != 0 || e.Stopped != "" {
		return f, fmt.Errorf("the proving child ended with code %d, signal %d, %s%s: %s", e.Code, e.Signal, e.Stopped, e.Error, out.stderr.buf)
	}
	if err := json.Unmarshal(out.stdout.buf, &f); err != nil {
		return f, fmt.Errorf("the proving child: %w", err)
	}
	return f, nil
}

// escaped looks on the machine for what the child was to write.
func (t trial) escaped(f finding) error {
	var found []string
	for _, dir := range t.Dirs {
		path := filepath.Join(dir, t.Name)
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			continue
		}
		found = append(found, path)
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("a forbidden write succeeded: %w", err)
		}
	}
	if b, err := os.ReadFile(t.File); err != nil || string(b) != "kept" {
		found = append(found, t.File)
	}
	if len(found) > 0 {
		return fmt.Errorf("a forbidden write succeeded: %s", found[0])
	}
	return nil
}

// network says what the child's attempts prove.
func (b *Box) network(level evidence.Level, f finding) (evidence.Isolation, error) {
	is := evidence.Isolation{Level: level, Network: evidence.Closed}
	switch {
	case f.Connected && level == evidence.Namespaces && b.spec.Network != NetworkHost:
		return is, errors.New("a forbidden connection succeeded")
	case f.Connected:
		is.Network = evidence.Open
	case f.Loopback:
		is.Network = evidence.Loopback
	}
	return is, nil
}
