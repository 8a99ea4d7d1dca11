package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/render"
)

// maxPassphrase is the longest line that is taken for a passphrase, in bytes.
const maxPassphrase = 1024

// passphrase gives the way to ask for the passphrase of a key file; nil where
// nobody can be asked: without a terminal on both ends, or with --no-input.
func (c *command) passphrase() func(context.Context, string) ([]byte, error) {
	in, ok := c.env.Stdin.(*os.File)
	if !ok || c.flags.noInput || !c.env.StderrTerminal || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	return func(ctx context.Context, file string) ([]byte, error) { return c.ask(ctx, in, file) }
}

// ask reads one line that the terminal does not show. The terminal is put back in
// every case: when the command is interrupted, too, while the reader is left to
// the end of the process.
func (c *command) ask(ctx context.Context, in *os.File, file string) (_ []byte, err error) {
	show, err := hide(int(in.Fd()))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "io", "ask for a passphrase")
	}
	defer func() {
		fmt.Fprintln(c.env.Stderr)
		if serr := show(); serr != nil {
			err = errors.Join(err, fault.Wrap(serr, fault.Internal, "io", "the terminal"))
		}
	}()
	fmt.Fprintf(c.env.Stderr, "passphrase of %s: ", render.Line(file))
	type line struct {
		text []byte
		err  error
	}
	got := make(chan line, 1)
	go func() {
		text, err := readLine(in)
		got <- line{text, err}
	}()
	select {
	case l := <-got:
		if l.err != nil {
			return nil, fault.Wrap(l.err, fault.Refused, "key_locked", "no passphrase of %s was given", file).Hint("ssh-add FILE")
		}
		return l.text, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// hide lets a terminal not show what is typed; what it returns undoes that.
func hide(fd int) (show func() error, err error) {
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	quiet := *was
	quiet.Lflag &^= unix.ECHO
	quiet.Lflag |= unix.ICANON | unix.ISIG
	quiet.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &quiet); err != nil {
		return nil, err
	}
	return func() error { return unix.IoctlSetTermios(fd, unix.TCSETS, was) }, nil
}

// readLine reads up to the end of a line, and not a byte further: what follows is
// for others.
func readLine(in io.Reader) ([]byte, error) {
	var out []byte
	b := make([]byte, 1)
	for len(out) < maxPassphrase {
		switch _, err := io.ReadFull(in, b); {
		case err != nil:
			clear(out)
			return nil, err
		case b[0] == '\n':
			return out, nil
		}
		out = append(out, b[0])
	}
	clear(out)
	return nil, fmt.Errorf("more than %d bytes", maxPassphrase)
}
