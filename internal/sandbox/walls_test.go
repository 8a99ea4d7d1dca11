package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
)

// write puts a file on the machine.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// read tells what is in a file of the machine.
func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// outside is a directory that no private wall covers, unlike /tmp.
func outside(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(cache+"/", "/tmp/") { // a user may keep it there
		if cache, err = os.UserHomeDir(); err != nil || strings.HasPrefix(cache+"/", "/tmp/") {
			t.Skip("cache and home are both below /tmp")
		}
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(cache, "proveto-test-") //nolint:usetesting // not below /tmp, which a box covers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestWallsStopWrites(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		dir := outside(t)
		write(t, dir+"/kept", "kept")
		b := open(t, level, Spec{})
		_, out := sh(t, b, "echo gone > kept; echo new > new", func(c *Command) { c.Root = dir })
		got := read(t, dir+"/kept")
		_, err := os.Lstat(dir + "/new")
		if stopped := got == "kept" && os.IsNotExist(err); stopped != (level != evidence.LimitsOnly) {
			t.Errorf("write stopped = %v at %s; file holds %q; shell said %s", stopped, level, got, out)
		}
	})
}

func TestWallsStopConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		level   evidence.Level
		network Network
		want    evidence.Network
		said    string // reached the machine, has a loopback
	}{
		{evidence.Namespaces, NetworkLoopback, evidence.Loopback, "false true"},
		{evidence.Namespaces, NetworkHost, evidence.Open, "true true"},
		{evidence.Landlock, NetworkLoopback, evidence.Closed, "false false"},
		{evidence.Landlock, NetworkHost, evidence.Open, "true true"},
		{evidence.LimitsOnly, NetworkLoopback, evidence.Open, "true true"},
	} {
		t.Run(string(c.level)+string(c.network), func(t *testing.T) {
			b := open(t, c.level, Spec{Network: c.network})
			if got, want := b.Isolation(), (evidence.Isolation{Level: c.level, Network: c.want}); got != want {
				t.Errorf("Isolation() = %+v, want %+v", got, want)
			}
			run, out := self(t, b, nil, "helper-dial", l.Addr().String())
			if out != c.said {
				t.Errorf("the command said %q, want %q", out, c.said)
			}
			if got := run.Record().Isolation; got != b.Isolation() {
				t.Errorf("the run records %+v, want %+v", got, b.Isolation())
			}
		})
	}
}

// A level that does not hold must be found out: here the walls are weaker than
// what is to be proven.
func TestProofRejectsWallsThatDoNotHold(t *testing.T) {
	b := open(t, evidence.LimitsOnly, Spec{})
	for _, claim := range []evidence.Level{evidence.Namespaces, evidence.Landlock} {
		if is, err := b.proven(t.Context(), claim); err == nil || !strings.Contains(err.Error(), "forbidden write") {
			t.Errorf("proven(%s) on a box of level limits = %+v, %v", claim, is, err)
		}
	}
	b = open(t, evidence.Namespaces, Spec{Network: NetworkHost})
	b.spec.Network = NetworkLoopback
	if is, err := b.proven(t.Context(), evidence.Namespaces); err == nil || !strings.Contains(err.Error(), "forbidden connection") {
		t.Errorf("proven on an open network = %+v, %v", is, err)
	}
}

func TestSourceIsTheOriginalForEachCommand(t *testing.T) {
	for name, dir := range map[string]func(*testing.T) string{"in the temporary directory": (*testing.T).TempDir, "elsewhere": outside} {
		t.Run(name, func(t *testing.T) {
			src := filepath.Join(dir(t), "a,b:c é", "src")
			write(t, src+"/sub/file", "original")
			write(t, src+"/keep/deep", "deep")
			b := open(t, evidence.Namespaces, Spec{Sources: []string{src}})
			at := func(c *Command) { c.Root = src }
			const look = "cat sub/file; echo; find . | sort"
			_, want := sh(t, b, look, at)
			for _, change := range []string{
				"echo changed > sub/file", "rm -r sub", "mv keep sub/kept", "echo new > new", "rm -r keep && mkdir keep",
				"chmod 700 .", "mkdir x && rmdir x && ln -s / y", "rm sub/file && mkdir sub/file", "echo more >> keep/deep",
			} {
				if run, out := sh(t, b, change, at); run.Record().Exit.Code != 0 {
					t.Errorf("%s: %s", change, out)
				}
				if _, got := sh(t, b, look, at); got != want {
					t.Errorf("after %q the next command sees (-want +got)\n%s", change, cmp.Diff(want, got))
				}
			}
			if got := read(t, src+"/sub/file"); got != "original" {
				t.Errorf("the file on the machine holds %q", got)
			}
		})
	}
}

func TestSourceIsReadOnlyWithLandlock(t *testing.T) {
	src := t.TempDir()
	write(t, src+"/file", "original")
	b := open(t, evidence.Landlock, Spec{Sources: []string{src}})
	run, out := sh(t, b, "cat file; rm file || echo changed > file", func(c *Command) { c.Root = src })
	if run.Record().Exit.Code == 0 || !strings.HasPrefix(out, "original") || read(t, src+"/file") != "original" {
		t.Errorf("exit %d, %s", run.Record().Exit.Code, out)
	}
}

func TestPrivateDirectoriesAreFreshForEachCommand(t *testing.T) {
	each(t, func(t *testing.T, level evidence.Level) {
		src := t.TempDir() // below /tmp: its parents are part of the private directory
		write(t, src+"/file", "original")
		b := open(t, level, Spec{Sources: []string{src}})
		dirs := `"$TMPDIR" "$HOME"`
		if level == evidence.Namespaces {
			dirs += " /dev/shm"
		}
		look := "for d in " + dirs + "; do ls -AlR --time-style=+ $d; done; ls -d " + src + " && cat " + src + "/file"
		_, want := sh(t, b, look)
		changes := []string{
			"for d in " + dirs + "; do echo x > $d/x; done",
			`mkdir -p "$TMPDIR/a/b" && chmod 0 "$TMPDIR/a/b" "$TMPDIR/a"`,
			`chmod 755 "$TMPDIR" "$HOME"`,
			`echo x > "$HOME/.profile"`,
		}
		if level == evidence.Namespaces {
			changes = append(changes, "mv "+filepath.Dir(src)+" /tmp/moved", "chmod 700 "+filepath.Dir(src))
		} else {
			changes = append(changes, `rmdir "$TMPDIR" "$HOME"`, `cd "$TMPDIR/.." && echo x > x`)
		}
		for _, change := range changes {
			if run, out := sh(t, b, change); run.Record().Exit.Code != 0 {
				t.Errorf("%s: %s", change, out)
			}
			if _, got := sh(t, b, look); got != want {
				t.Errorf("after %q the next command sees (-want +got)\n%s", change, cmp.Diff(want, got))
			}
		}
		if read(t, src+"/file") != "original" {
			t.Error("the source on the machine was changed")
		}
	})
}

func TestMachineFilesInTmpAreNotSeen(t *testing.T) {
	f, err := os.CreateTemp("/tmp", "proveto-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Name())
	f.Close()
	b := open(t, evidence.Namespaces, Spec{})
	if run, out := sh(t, b, "ls "+f.Name()); run.Record().Exit.Code == 0 {
		t.Errorf("seen: %s", out)
	}
}

func TestHiddenDirectoryLooksEmpty(t *testing.T) {
	for _, level := range levels[:2] {
		t.Run(string(level), func(t *testing.T) {
			dir := outside(t)
			for _, name := range []string{"secret", "open/file", "src/file", "cache/file"} {
				write(t, filepath.Join(dir, name), name)
			}
			b := open(t, level, Spec{
				Hidden: []string{dir, dir + "/missing"}, ReadOnly: []string{dir + "/open"}, Sources: []string{dir + "/src"}, Writable: []string{dir + "/cache"},
			})
			in := func(c *Command) { c.Root = "/"; c.Env = append(c.Env, "D="+dir) }
			if run, out := sh(t, b, "cat $D/secret", in); run.Record().Exit.Code == 0 {
				t.Errorf("the secret is seen: %s", out)
			}
			if level == evidence.Namespaces {
				if _, out := sh(t, b, "ls -A $D | sort | tr '\\n' ' '", in); out != "cache open src" {
					t.Errorf("hidden directory holds %q", out)
				}
			}
			if run, _ := sh(t, b, "echo x > $D/x", in); run.Record().Exit.Code == 0 {
				t.Error("the hidden directory can be written to")
			}
			if _, out := sh(t, b, "cat $D/open/file $D/src/file $D/cache/file", in); out != "open/filesrc/filecache/file" {
				t.Errorf("walls below the hidden directory show %q", out)
			}
			if run, _ := sh(t, b, "echo x > $D/open/file", in); run.Record().Exit.Code == 0 {
				t.Error("a read-only wall can be written to")
			}
			if run, out := sh(t, b, "echo more >> $D/cache/file && mkdir $D/cache/new", in); run.Record().Exit.Code != 0 {
				t.Errorf("a writable wall cannot be written to: %s", out)
			}
			if got := read(t, dir+"/cache/file"); got != "cache/filemore\n" {
				t.Errorf("what was written to a writable wall did not stay: %q", got)
			}
		})
	}
}

func TestCommandHasNoPrivileges(t *testing.T) {
	for _, level := range levels[:2] {
		t.Run(string(level), func(t *testing.T) {
			b := open(t, level, Spec{})
			zero := strings.Repeat("0", 16)
			want := fmt.Sprintf("CapInh:\t%[1]s\nCapPrm:\t%[1]s\nCapEff:\t%[1]s\nCapBnd:\t%[1]s\nCapAmb:\t%[1]s\nNoNewPrivs:\t1", zero)
			if os.Getuid() != 0 && level == evidence.Landlock {
				t.Skip("the bounding set of an ordinary user cannot be dropped, and cannot be used either")
			}
			if _, got := sh(t, b, "grep -E 'Cap|NoNew' /proc/self/status"); got != want {
				t.Errorf("status (-want +got)\n%s", cmp.Diff(want, got))
			}
			udp := "udp errno 0"
			if level == evidence.Landlock {
				udp = "udp permission denied"
			}
			want = strings.Join([]string{
				"unshare operation not permitted", "vsock address family not supported by protocol", "ptrace operation not permitted",
				"keyctl operation not permitted", "io_uring operation not permitted", udp, "tcp <nil>",
			}, "\n")
			_, got := self(t, b, nil, "helper-syscalls")
			if got = strings.Replace(got, "udp <nil>", "udp errno 0", 1); got != want {
				t.Errorf("system calls (-want +got)\n%s", cmp.Diff(want, got))
			}
			const setting = "/proc/sys/kernel/randomize_va_space"
			if run, out := sh(t, b, "v=$(cat "+setting+") && echo $v > "+setting); run.Record().Exit.Code == 0 {
				t.Errorf("a kernel setting can be written to: %s", out)
			}
		})
	}
}

func TestSupervisorIsOutOfReach(t *testing.T) {
	for level, pid := range map[evidence.Level]string{evidence.Namespaces: "1", evidence.Landlock: "$PPID"} {
		t.Run(string(level), func(t *testing.T) {
			b := open(t, level, Spec{})
			_, out := sh(t, b, "for s in TERM INT HUP QUIT SEGV BUS FPE ILL ABRT TRAP PIPE ALRM USR1 USR2 TSTP PROF STOP KILL; do kill -$s "+pid+"; done 2>/dev/null; echo alive")
			if out != "alive" {
				t.Errorf("output = %q", out)
			}
			for _, look := range []string{"cat /proc/PID/environ", "head -c 1 /proc/PID/maps", "ls /proc/PID/root/", "readlink /proc/PID/fd/0"} {
				if run, out := sh(t, b, strings.ReplaceAll(look, "PID", pid)); run.Record().Exit.Code == 0 {
					t.Errorf("%s: %s", look, out)
				}
			}
		})
	}
}

func TestDevicesAreThere(t *testing.T) {
	b := open(t, evidence.Namespaces, Spec{})
	const script = "echo x > /dev/null && head -c 2 /dev/zero | wc -c && head -c 2 /dev/urandom | wc -c && echo x > /dev/stderr && test -e /dev/ptmx && hostname"
	if _, out := sh(t, b, script); out != "2\n2\nlocalhost\nx" {
		t.Errorf("output = %q", out)
	}
	if run, out := sh(t, b, "ls /dev/vda /dev/kvm /dev/sda 2>/dev/null; echo x > /dev/x"); run.Record().Exit.Code == 0 || strings.HasPrefix(out, "/dev/") {
		t.Errorf("output = %q", out)
	}
}
