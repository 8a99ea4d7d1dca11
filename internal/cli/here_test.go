package cli

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/proveto/proveto/internal/fault"
)

func TestCommandsWorkWhereTheUserStands(t *testing.T) {
	t.Parallel()
	c := &command{flags: common{dir: "a b", state: "/s"}}
	for run, want := range map[string]string{
		"proveto why x":                "proveto -C 'a b' --state /s why x",
		"CI=1 proveto start":           "CI=1 proveto -C 'a b' --state /s start",
		"proveto -C DIR":               "proveto --state /s -C DIR",
		"proveto help evidence":        "proveto help evidence",
		"go test ./...":                "go test ./...",
		"this version of proveto says": "this version of proveto says",
	} {
		if got := c.Here(run); got != want {
			t.Errorf("Here(%q) = %q, want %q", run, got, want)
		}
	}
	if got := (&command{}).Here("proveto why x"); got != "proveto why x" {
		t.Errorf("without flags: %q", got)
	}
}

func TestAFullDiskSaysWhatHelps(t *testing.T) {
	t.Parallel()
	for _, err := range []error{fmt.Errorf("write: %w", syscall.ENOSPC), fault.New(fault.Internal, "io", "git: fatal: No space left on device")} {
		if got := spaceless(fault.From(err)); got.Code != "no_space" || !slices.Contains(got.Hints, "proveto gc") || got.Kind.Exit() != 1 {
			t.Errorf("spaceless(%v) = %s, hints %q", err, got.Code, got.Hints)
		}
	}
	if got := spaceless(fault.New(fault.Internal, "io", "write x")); got.Code != "io" {
		t.Errorf("another error became %s", got.Code)
	}
}
