// Command try lays out one attack for a look by hand: a git repository in a
// temporary directory for the attack and one for its twin, with the commands to
// run in them.
//
//	go run ./attacks/try 03-exit-early [LANGUAGE]
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/proveto/proveto/attacks"
)

func main() {
	if err := try(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "try:", err)
		os.Exit(1)
	}
}

func try(out io.Writer, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return errors.New("usage: go run ./attacks/try NN-name [LANGUAGE], in the root of the repository")
	}
	rows, err := attacks.Load("attacks")
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Name != args[0] && r.ID != args[0] {
			continue
		}
		for _, c := range r.Cases {
			if len(args) == 1 || args[1] == c.Language {
				return lay(out, r, c)
			}
		}
	}
	return fmt.Errorf("no attack is called %q; attacks/README.md lists them", args)
}

func lay(out io.Writer, r attacks.Row, c attacks.Case) error {
	dir, err := os.MkdirTemp("", "proveto-"+r.Name+"-")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n\n", r.Name, r.Title)
	for _, side := range []string{"attack", "twin"} {
		repo := filepath.Join(dir, side)
		if err := os.Mkdir(repo, 0o755); err != nil {
			return err
		}
		if err := git(repo, "init", "-q", "-b", "main"); err != nil {
			return err
		}
		steps := c.Archives(side)
		for i, name := range []string{"base", side} {
			if err := attacks.Lay(repo, steps[i]); err != nil {
				return err
			}
			if err := git(repo, "add", "--all"); err != nil {
				return err
			}
			if err := git(repo, "-c", "user.name=try", "-c", "user.email=try@example.test", "commit", "-q", "--allow-empty", "-m", name); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(out, "attack  %s\n        must happen: %s\ntwin    %s\n        credited in full\n\n", r.Attack, r.Must, r.Twin)
	fmt.Fprintf(out, "cd %s   # or twin; HEAD~1 is the repository before\n%s", filepath.Join(dir, "attack"), c.After)
	return nil
}

func git(dir string, args ...string) error {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %v: %w: %s", args, err, b)
	}
	return nil
}
