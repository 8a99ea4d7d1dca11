package gates_test

import (
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/app/gates"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/gate"
)

func TestProveChanged(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	tree := w.honest()
	res := w.measure("prove.changed", tree, nil)
	w.want(res, gate.Pass, "")
	if m := res.Evidence.Metrics; m["proven"] != 1 || m["changed"] != 1 || len(res.Evidence.Certificates) != 1 || len(res.Evidence.Runs) == 0 || res.Evidence.Isolation == "" {
		t.Errorf("evidence %+v, want one changed behaviour with its certificate and runs", res.Evidence)
	}
	w.want(w.measure("prove.changed", w.base, nil), gate.Pass, "")
	w.want(w.measure("prove.changed", w.base, func(r *gates.Request) { r.Policy.WhenEmpty = "refuse" }), gate.Empty, "empty")

	blind := w.measure("prove.changed", w.tree(func() {
		w.edit("triple_test.go", "if got := Triple(2); got != 6 {\n\t\tt.Errorf(\"Triple(2) = %d, want 6\", got)\n\t}", "Triple(2)")
	}), nil)
	w.want(blind, gate.No, "gate_failed")
	if i := blind.Issues[0]; i.Category != gate.TestGap || i.File != "calc.go" || !strings.Contains(i.Diff, "n * 3") || len(i.Repro) == 0 {
		t.Errorf("issue %+v, want the survivor with its diff", i)
	}
	// No test at all is a gap of the change, not something that could not be measured.
	w.want(w.measure("prove.changed", w.tree(func() { w.git("rm", "-q", "triple_test.go") }), nil), gate.No, "gate_failed")
	w.sound()
}

func TestProveRequirements(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	// The base has a bug that the change mends, and the change adds a function.
	w.edit("calc.go", "return n * 2", "return n * 3")
	w.edit("calc_test.go", "got := Double(3); got != 6", "got := Double(0); got != 0")
	w.base = w.commit()
	tree := w.tree(func() {
		w.edit("calc.go", "return n * 3\n}\n", "return n * 2\n}\n"+honestCode)
		w.write("triple_test.go", honestTest)
		w.write("double_test.go", `package calc

import "testing"

func TestDoubleOfThree(t *testing.T) {
	if got := Double(3); got != 6 {
		t.Errorf("Double(3) = %d, want 6", got)
	}
}

func TestLooksAtNothing(t *testing.T) {
	Double(3)
}
`)
	})
	ask := func(added []string, as ...gates.Acceptance) gates.Result {
		return w.measure("prove.requirements", tree, func(r *gates.Request) { r.Acceptance, r.Added = as, added })
	}
	fixed := gates.Acceptance{Requirement: "R1", ID: "A1", Test: "double_test.go::TestDoubleOfThree", Before: "fails"}
	added := gates.Acceptance{Requirement: "R2", ID: "A2", Test: "triple_test.go::TestTriple", Before: "absent"}
	idle := gates.Acceptance{Requirement: "R3", ID: "A3", Test: "double_test.go::TestLooksAtNothing", Before: "passes"}
	res := ask([]string{"calc.Triple"}, fixed, added)
	w.want(res, gate.Pass, "")
	if !stands(res, "R1", 0) || !stands(res, "R2", 1) || len(res.Evidence.Certificates) != 2 {
		t.Errorf("requirements %v, certificates %v", res.Evidence.Requirements, res.Evidence.Certificates)
	}
	for _, row := range []struct {
		name  string
		added []string
		a     gates.Acceptance
		says  string
	}{
		{"no assertion", nil, idle, "stays green"},
		{"it failed to build, not by assertion", nil, gates.Acceptance{Requirement: "R2", ID: "A2", Test: added.Test, Before: "fails"}, `"absent"`},
		{"absent without a declared symbol", nil, added, "declares no symbol"},
		{"it was green before", nil, gates.Acceptance{Requirement: "R4", ID: "A4", Test: "calc_test.go::TestAdd", Before: "fails"}, `"passes"`},
		{"no such file", nil, gates.Acceptance{Requirement: "R5", ID: "A5", Test: "no_test.go::TestNo", Before: "fails"}, "no file"},
		{"it reaches nothing of the change", nil, gates.Acceptance{Requirement: "R6", ID: "A6", Test: "calc_test.go::TestAdd", Before: "passes"}, "stays green"},
	} {
		res := ask(row.added, row.a)
		w.want(res, gate.No, "gate_failed")
		if !strings.Contains(res.Evidence.Reason, row.says) || res.Evidence.Requirements[row.a.Requirement].State != evidence.Refuted {
			t.Errorf("%s: %q and %v, want it to say %q", row.name, res.Evidence.Reason, res.Evidence.Requirements, row.says)
		}
	}
	w.want(ask(nil), gate.Empty, "empty")
	w.sound()
}

// stands tells whether a requirement is proven by the certificate at a place alone.
func stands(res gates.Result, id string, at int) bool {
	q, certs := res.Evidence.Requirements[id], res.Evidence.Certificates
	return q.State == evidence.Proven && len(q.Certificates) == 1 && at < len(certs) && q.Certificates[0] == certs[at]
}

// A command of the plan counts when it refuses the base and accepts the tree.
func TestProveRequirementsByCommand(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	tree := w.honest()
	ask := func(as ...gates.Acceptance) gates.Result {
		return w.measure("prove.requirements", tree, func(r *gates.Request) { r.Acceptance = as })
	}
	by := func(argv ...string) gates.Acceptance {
		return gates.Acceptance{Requirement: "R1", ID: "A1", Command: argv}
	}
	res := ask(by("grep", "-q", "func Triple", "calc.go"))
	w.want(res, gate.Pass, "")
	if !stands(res, "R1", 0) || len(res.Evidence.Certificates) != 1 {
		t.Errorf("requirements %v, certificates %v", res.Evidence.Requirements, res.Evidence.Certificates)
	}
	for _, row := range []struct {
		argv    []string
		outcome gate.Outcome
		code    fault.Code
		word    evidence.Word
	}{
		{[]string{"true"}, gate.NotMeasured, gate.CodeBlind, evidence.NotMeasured},
		{[]string{"go", "vet", "./..."}, gate.NotMeasured, gate.CodeBlind, evidence.NotMeasured}, // it holds before, too
		{[]string{"false"}, gate.No, gate.CodeFailed, evidence.Refuted},
		{[]string{"no-such-program"}, gate.NotMeasured, gate.CodeToolMissing, evidence.NotMeasured},
	} {
		// What another acceptance of the requirement says does not make up for it.
		res := ask(by("grep", "-q", "func Triple", "calc.go"), by(row.argv...), by("grep", "-q", "Triple", "calc.go"))
		w.want(res, row.outcome, string(row.code))
		if res.Evidence.Requirements["R1"].State != row.word || !strings.Contains(res.Evidence.Reason, row.argv[0]) {
			t.Errorf("%q: %v, %q; want %s", row.argv, res.Evidence.Requirements, res.Evidence.Reason, row.word)
		}
	}
	w.sound()
}

func TestMergePreview(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	tree := w.honest()
	preview := func(at evidence.Tree, conflicts ...string) gates.Result {
		return w.measure("merge.preview", tree, func(r *gates.Request) { r.MergeTree, r.Conflicts = at, conflicts })
	}
	same := preview(tree)
	w.want(same, gate.Pass, "")
	if len(same.Evidence.Runs) != 0 {
		t.Errorf("the snapshot itself was measured again: %d runs", len(same.Evidence.Runs))
	}
	w.want(preview("", "calc.go"), gate.No, "merge_conflict")
	good := preview(w.tree(func() { w.write("other.go", "package calc\n\n// Zero is none.\nfunc Zero() int { return 0 }\n") }))
	w.want(good, gate.Pass, "")
	if len(good.Evidence.Certificates) != 2 || good.Evidence.Tests == nil {
		t.Errorf("evidence %+v, want the certificates of build and suite", good.Evidence)
	}
	w.want(preview(w.tree(func() { w.edit("calc.go", "return n * 2", "return n * 5") })), gate.No, "gate_failed")
	w.want(preview(w.tree(func() { w.edit("other.go", "return 0", "return zero") })), gate.No, "gate_failed")
}
