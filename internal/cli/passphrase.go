package cli

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/render"
)

// passphrase gives the way to ask for the passphrase of a key file; nil where
// nobody can be asked: without a terminal on both ends, or with --no-input.
func (c *command) passphrase() func(context.Context, string) ([]byte, error) {
	in, ok := c.env.Stdin.(*os.File)
	if !ok || c.flags.noInput || !c.env.StderrTerminal || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	return func(ctx context.Context, file string) ([]byte, error) { return c.ask(ctx, in, file) }
}

// ask reads one line without showing it. When the command is interrupted the
// terminal shows again what is typed; the reader is left to the end of the
// process.
func (c *command) ask(ctx context.Context, in *os.File, file string) ([]byte, error) {
	fd := int(in.Fd())
	was, err := term.GetState(fd)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "io", "ask for a passphrase")
	}
	fmt.Fprintf(c.env.Stderr, "passphrase of %s: ", render.Line(file))
	type line struct {
		text []byte
		err  error
	}
	got := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		got <- line{text, err}
	}()
	select {
	case l := <-got:
		fmt.Fprintln(c.env.Stderr)
		if l.err != nil {
			return nil, fault.Wrap(l.err, fault.Refused, "key_locked", "no passphrase of %s was given", file).Hint("ssh-add FILE")
		}
		return l.text, nil
	case <-ctx.Done():
		fmt.Fprintln(c.env.Stderr)
		if err := term.Restore(fd, was); err != nil {
			return nil, fault.Wrap(err, fault.Internal, "io", "the terminal")
		}
		return nil, context.Cause(ctx)
	}
}
