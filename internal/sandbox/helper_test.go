package sandbox

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/proveto/proveto/internal/evidence"
)

// helpers are the commands that tests run in a box, by starting the test binary.
var helpers = map[string]func(args []string) error{
	"helper-report":   helperReport,
	"helper-memory":   helperMemory,
	"helper-dial":     helperDial,
	"helper-syscalls": helperSyscalls,
	"helper-parent":   helperParent,
	"helper-levels":   helperLevels,
}

// helper runs the test binary as the command of a test.
func helper(args []string) (code int, handled bool) {
	if len(args) == 0 || helpers[args[0]] == nil {
		return 0, false
	}
	if err := helpers[args[0]](args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// controller writes frames as the code inside a judged process does.
type controller struct {
	out  *os.File
	key  []byte
	next int
}

func newController() (*controller, error) {
	in, out := os.NewFile(3, "instructions"), os.NewFile(4, "report")
	b, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	in.Close()
	unix.CloseOnExec(4)
	os.Unsetenv(reportVariable)
	var doc instructions
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, err
	}
	fmt.Printf("%s\n", doc.Instructions)
	key, err := hex.DecodeString(doc.Key)
	return &controller{out: out, key: key}, err
}

func (c *controller) write(event string) {
	text := strconv.Itoa(c.next) + " " + event
	mac := hmac.New(sha256.New, c.key)
	io.WriteString(mac, text)
	fmt.Fprintf(c.out, "%d %s %s\n", c.next, hex.EncodeToString(mac.Sum(nil))[:32], event)
	c.next++
}

// helperReport reports one test in the way named by its argument.
func helperReport(args []string) error {
	c, err := newController()
	if err != nil {
		return err
	}
	c.write(`{"kind":"begin","test":"TestA"}`)
	switch args[0] {
	case "early":
		os.Exit(0)
	case "gap":
		c.next++
	case "forged":
		fmt.Fprintf(c.out, "1 %s %s\n", strings.Repeat("0", 32), `{"kind":"pass","test":"TestA"}`)
	case "garbage":
		fmt.Fprintln(c.out, "--- PASS: TestA")
	case "replayed":
		c.next--
	case "descriptors":
		cmd := exec.Command("/bin/sh", "-c", "ls /proc/self/fd; echo $"+reportVariable)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
	case "late":
		c.write(`{"kind":"end"}`)
	case "torn":
		fmt.Fprint(c.out, "1 00")
		os.Exit(0)
	}
	c.write(`{"kind":"pass","test":"TestA"}`)
	c.write(`{"kind":"end"}`)
	return nil
}

// helperMemory takes the given number of bytes and says so.
func helperMemory(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var kept [][]byte
	for range n >> 20 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
	}
	fmt.Println("took", len(kept))
	if len(args) > 1 { // keep it until ended
		time.Sleep(time.Hour) // select {} would be a deadlock in a process without other goroutines
	}
	return nil
}

func helperDial(args []string) error {
	fmt.Println(dial(args[0]), loopback())
	return nil
}

// helperSyscalls makes calls that need no capability and that no command may
// make.
func helperSyscalls([]string) error {
	say := func(name string, err error) { fmt.Println(name, err) }
	say("unshare", unix.Unshare(unix.CLONE_NEWUSER))
	_, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	say("vsock", err)
	_, _, e := unix.Syscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0)
	say("ptrace", e)
	_, err = unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
	say("keyctl", err)
	var params [120]byte
	_, _, e = unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	say("io_uring", e)
	_, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	say("udp", err)
	_, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	say("tcp", err)
	return nil
}

// helperParent opens a box, prints the supervisor's pid and runs a script until
// it is killed.
func helperParent(args []string) error {
	level := evidence.Level(args[0])
	b, err := Open(context.Background(), Spec{Min: level, Max: level, Writable: []string{args[1]}})
	if err != nil {
		return err
	}
	fmt.Println(b.process.Pid)
	_, _, err = b.Run(context.Background(), Command{
		Purpose: evidence.PurposeTool, Argv: []string{"/bin/sh", "-c", args[2]}, Root: args[1], Env: []string{"PATH=/usr/bin:/bin"},
	})
	return err
}

// helperLevels tries every level and then runs a command on the best.
func helperLevels([]string) error {
	w := bufio.NewWriter(os.Stdout)
	for _, r := range Probe(context.Background()) {
		fmt.Fprintln(w, r.Level, r.Network, r.Works, r.Reason)
	}
	b, err := Open(context.Background(), Spec{})
	if err != nil {
		return err
	}
	run, out, err := b.Run(context.Background(), Command{Purpose: evidence.PurposeTool, Argv: []string{"/usr/bin/id", "-u"}, Root: "/"})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s%d\n", out.Stdout, run.Record().Exit.Code)
	return errors.Join(w.Flush(), b.Close())
}
