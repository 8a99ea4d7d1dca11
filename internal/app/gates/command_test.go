package gates_test

import (
	"testing"
	"time"

	"github.com/proveto/proveto/internal/app/gates"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/gate"
)

func command(probe gates.Probe, argv ...string) func(*gates.Request) {
	return func(r *gates.Request) { r.Policy = gates.Policy{Kind: gate.KindCommand, Argv: argv, Probe: probe} }
}

func TestCommandMustRefuseItsProbe(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	w.write("ci/check", "#!/bin/sh\n! grep -q FORBIDDEN calc.go\n")
	w.git("add", "-A")
	w.git("update-index", "--chmod=+x", "ci/check")
	w.write(".proveto/bad.patch", "--- a/calc.go\n+++ b/calc.go\n@@ -2,1 +2,2 @@\n package calc\n+// FORBIDDEN\n")
	w.git("add", "-A")
	w.git("update-index", "--chmod=+x", "ci/check")
	w.git("config", "core.fileMode", "false")
	w.base = w.commit()
	tree := w.honest()
	patch := gates.Probe{Patch: ".proveto/bad.patch"}

	good := w.measure("command.words", tree, command(patch, "ci/check"))
	w.proven(good)
	if good.Probe.Sabotage.Kind != evidence.SabotagePatch {
		t.Errorf("probed with %+v", good.Probe.Sabotage)
	}
	for _, argv := range [][]string{{"true"}, {"sh", "-c", "exit 0"}, {"sh", "-c", "ci/check || true"}} {
		blind := w.measure("command.words", tree, command(patch, argv...))
		w.want(blind, gate.NotMeasured, "gate_blind")
		if blind.Evidence.Probe != "" {
			t.Errorf("%q earned a certificate", argv)
		}
	}
	w.want(w.measure("command.words", tree, command(gates.Probe{}, "ci/check")), gate.NotMeasured, "gate_not_proven")
	w.want(w.measure("command.words", tree, command(gates.Probe{Patch: "no.patch"}, "ci/check")), gate.NotMeasured, "gate_not_proven")
	w.want(w.measure("command.words", tree, command(patch, "no-such-program")), gate.NotMeasured, "tool_missing")
	no := w.measure("command.words", w.tree(func() { w.edit("calc.go", "package calc\n", "package calc // FORBIDDEN\n") }), command(patch, "ci/check"))
	w.want(no, gate.No, "gate_failed")
	w.want(w.measure("command.words", tree, func(r *gates.Request) {
		command(patch, "sh", "-c", "while :; do :; done")(r)
		r.Policy.Time = 2 * time.Second
	}), gate.NotMeasured, "timed_out")
	w.sound()
}

func TestCommandWithMutantAndBrokenBuild(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	tree := w.honest()
	res := w.measure("command.test", tree, command(gates.Probe{Mutant: true}, "go", "test", "./..."))
	w.proven(res)
	if s := res.Probe.Sabotage; s.Kind != evidence.SabotageMutant || s.Tree == "" || s.Diff == "" {
		t.Errorf("probed with %+v", s)
	}
	w.proven(w.measure("command.vet", tree, command(gates.Probe{Break: "build"}, "go", "vet", "./...")))
	// go vet says nothing about behaviour.
	w.want(w.measure("command.vet", tree, command(gates.Probe{Mutant: true}, "go", "vet", "./...")), gate.NotMeasured, "gate_blind")
}
