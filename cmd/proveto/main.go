// Command proveto proves which behaviours of a checkout are guarded by a test.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/proveto/proveto/internal/app"
	"github.com/proveto/proveto/internal/app/gates"
	"github.com/proveto/proveto/internal/cli"
	"github.com/proveto/proveto/internal/lang"
	"github.com/proveto/proveto/internal/lang/golang"
	"github.com/proveto/proveto/internal/lang/golang/source"
	"github.com/proveto/proveto/internal/sandbox"
)

// version is set by the release build.
var version string

func main() {
	// The sandbox starts this executable again, as its supervisor and as the
	// helper of a language.
	if code, handled := sandbox.Reexec(os.Args[1:]); handled {
		os.Exit(code)
	}
	if code, handled := source.Reexec(os.Args[1:]); handled {
		os.Exit(code)
	}
	if code, handled := gates.Reexec(os.Args[1:]); handled {
		os.Exit(code)
	}
	ctx, stop := interruptible()
	code := cli.Run(ctx, cli.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Environ: os.Environ(),
		StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())), StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Version: app.VersionString(version),
		New: func(s app.Settings) (*app.App, error) {
			s.Drivers = []lang.Driver{golang.New()}
			return app.New(s)
		},
	}, os.Args[1:])
	stop()
	os.Exit(code)
}

// interruptible ends the context at the first Ctrl-C or SIGTERM, so that the
// step in hand is finished and recorded; the second one ends the process, and
// with it everything that runs in a sandbox.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		cancel(app.ErrInterrupted)
		if _, ok := <-signals; ok {
			os.Exit(130)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}
