package gates_test

import (
	"testing"
	"time"

	"github.com/proveto/proveto/internal/app/gates"
	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/gate"
)

const honestCode = `
// Triple is three times a number.
func Triple(n int) int {
	return n * 3
}
`

const honestTest = `package calc

import "testing"

func TestTriple(t *testing.T) {
	if got := Triple(2); got != 6 {
		t.Errorf("Triple(2) = %d, want 6", got)
	}
}
`

// honest adds a function with its test.
func (w *world) honest() evidence.Tree {
	w.t.Helper()
	return w.tree(func() {
		w.edit("calc.go", "\treturn n * 2\n}\n", "\treturn n * 2\n}\n"+honestCode)
		w.write("triple_test.go", honestTest)
	})
}

func TestHonestChangePassesEveryGate(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	tree := w.honest()
	base := w.measure("baseline", "", nil)
	w.want(base, gate.Pass, "")
	if c := base.Evidence.Tests; c == nil || c.Discovered != 4 || c.Executed != 4 || c.Failed != 0 {
		t.Errorf("tests of the base: %+v, want 4 that ran", c)
	}
	w.proven(w.measure("build", tree, nil))
	w.proven(w.measure("secrets", tree, nil))
	kept := w.measure("suite.kept", tree, func(r *gates.Request) { r.Baseline = base.Baseline })
	w.proven(kept)
	if kept.Probe.Sabotage.Kind != evidence.SabotageSkip {
		t.Errorf("suite.kept was probed with %+v", kept.Probe.Sabotage)
	}
	full := w.measure("suite.full", tree, nil)
	w.proven(full)
	if full.Probe.Sabotage.Kind != evidence.SabotageMutant {
		t.Errorf("suite.full was probed with %+v", full.Probe.Sabotage)
	}
	// The same gate on the same tree runs nothing; on another tree it needs no probe.
	again := w.measure("suite.full", tree, func(r *gates.Request) {
		r.Known = func(_ ctx, d evidence.Digest, s gate.Subject) (gate.Evidence, []gate.Issue, bool) {
			return full.Evidence, full.Issues, d == full.Evidence.GateDigest && s == full.Evidence.Subject
		}
	})
	if again.Evidence.Reused != full.Evidence.ID || again.Evidence.Outcome != gate.Pass || again.Evidence.ID == full.Evidence.ID {
		t.Errorf("measured again: %+v, want a repetition of %s", again.Evidence, full.Evidence.ID)
	}
	other := w.measure("suite.full", w.base, func(r *gates.Request) {
		r.Probed = func(ctx, evidence.Digest, evidence.Tree) (evidence.Digest, bool) { return full.Evidence.Probe, true }
	})
	w.proven(other)
	if !other.Probe.Reused {
		t.Error("the probe was made again")
	}
	w.sound()
}

func TestBuildSaysWhereItBreaks(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	res := w.measure("build", w.tree(func() { w.edit("calc.go", "return a + b", "return a + c") }), nil)
	w.want(res, gate.No, "gate_failed")
	if i := res.Issues[0]; i.File != "calc.go" || i.Line != 6 || len(i.Repro) == 0 {
		t.Errorf("issue %+v, want calc.go:6 and a command", i)
	}
	res = w.measure("build", w.tree(func() {
		w.edit("calc.go", "return a + c", "return a + b")
		w.write("broken_test.go", "package calc\n\nvar _ = undefined\n")
	}), nil)
	w.want(res, gate.No, "gate_failed")
	if i := res.Issues[0]; i.File != "broken_test.go" {
		t.Errorf("issue %+v, want broken_test.go", i)
	}
}

func TestSecretsSeesWhatIsAddedOnly(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	key := "AKIA" + "Q3EGVXR7YTMN2LKD"
	w.write("config.txt", "region = eu\nkey = "+key+"\n")
	w.base = w.commit()
	w.proven(w.measure("secrets", w.tree(func() { w.write("config.txt", "region = us\nsize = 3\nkey = "+key+"\n") }), nil))
	res := w.measure("secrets", w.tree(func() { w.write("sub/other.txt", "\n\nkey="+key+"\n") }), nil)
	w.want(res, gate.No, "gate_failed")
	if i := res.Issues[0]; i.File != "sub/other.txt" || i.Line != 3 {
		t.Errorf("issue %+v, want sub/other.txt:3", i)
	}
}

// Each cheat is refused, and the honest change that looks like it is not.
func TestSuiteKeptAgainstCheats(t *testing.T) {
	t.Parallel()
	const stub = "module github.com/inconshreveable/mousetrap\n\ngo 1.18\n"
	for _, row := range []struct {
		name   string
		attack func(*world)
		code   string
		twin   func(*world)
	}{
		{
			"skip",
			func(w *world) {
				w.edit("calc_test.go", "func TestDouble(t *testing.T) {\n", "func TestDouble(t *testing.T) {\n\tt.Skip(\"later\")\n")
			},
			"tests_not_run",
			func(w *world) {
				w.write("more_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestPlatform(t *testing.T) {\n\tt.Skip(\"not here\")\n}\n")
			},
		},
		{
			"exit early",
			func(w *world) {
				w.write("main_test.go", "package calc\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n")
			},
			"report_incomplete",
			func(w *world) {
				w.write("main_test.go", "package calc\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n")
			},
		},
		{
			"runner hook",
			func(w *world) {
				w.edit("calc.go", "return n * 2", "return n * 3")
				w.write("main_test.go", "package calc\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tm.Run()\n\tos.Exit(0)\n}\n")
			},
			"gate_failed",
			func(w *world) {
				w.write("main_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestMain(m *testing.M) {\n\tprintln(\"set up\")\n\tm.Run()\n}\n")
			},
		},
		{
			"shrunk suite",
			func(w *world) { w.edit("calc_test.go", `, {"negative", -1, 1, 0}, {"large", 100, 1, 101}`, "") },
			"denominator_fell",
			func(w *world) {
				w.edit("calc_test.go", `, {"large", 100, 1, 101}`, "")
				w.write("large_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestAddLarge(t *testing.T) {\n\tif Add(100, 1) != 101 {\n\t\tt.Error(\"no\")\n\t}\n}\n")
			},
		},
		{
			"test edited to fit the bug",
			func(w *world) {
				w.edit("calc.go", "return n * 2", "return n * 3")
				w.edit("calc_test.go", "Double(3); got != 6", "Double(3); got != 9")
			},
			"gate_failed",
			func(w *world) {
				w.edit("calc.go", "return n * 2", "return n + n")
				w.edit("calc_test.go", "Double(3); got != 6", "Double(3); 6 != got")
			},
		},
		{
			"stub dependency",
			func(w *world) {
				w.edit("go.mod", "go 1.22\n", "go 1.22\n\nrequire github.com/inconshreveable/mousetrap v1.1.0\n\nreplace github.com/inconshreveable/mousetrap => ./stub\n")
				w.write("stub/go.mod", stub)
				w.write("stub/stub.go", "package mousetrap\n\nfunc StartedByExplorer() bool { return false }\n")
			},
			"origin_changed",
			func(w *world) {
				w.edit("go.mod", "go 1.22\n", "go 1.22\n\nrequire github.com/inconshreveable/mousetrap v1.1.0\n")
				w.write("go.sum", "github.com/inconshreveable/mousetrap v1.1.0 h1:wN+x4NVGpMsO7ErUn/mUI3vEoE6Jt13X2s0bqwp9tc8=\ngithub.com/inconshreveable/mousetrap v1.1.0/go.mod h1:vpF70FUmC8bwa3OWnCshd2FqLfsEA9PFc4w1p2J65bw=\n")
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, "calc.txtar")
			w.want(w.measure("suite.kept", w.tree(func() { row.attack(w) }), nil), gate.No, row.code)
			w.git("checkout", "-q", "HEAD~1", "--", ".")
			w.git("clean", "-qfd")
			w.git("rm", "-rqf", "--cached", ".")
			w.git("checkout", "-q", "HEAD~1", "-f")
			w.proven(w.measure("suite.kept", w.tree(func() { row.twin(w) }), nil))
		})
	}
}

func TestBaselineNamesRedAndFlaky(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	w.write("red_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestRed(t *testing.T) { t.Error(\"as ever\") }\n")
	w.base = w.commit()
	base := w.measure("baseline", "", nil)
	w.want(base, gate.Pass, "")
	if red := base.Evidence.Named["red"]; len(red) != 1 || red[0] != "example.test/calc TestRed" {
		t.Errorf("red at the base: %v", red)
	}
	// A red baseline limits what is kept to the green tests.
	w.proven(w.measure("suite.kept", w.honest(), nil))

	w.write("crash_test.go", "package calc\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestCrash(t *testing.T) { os.Exit(3) }\n")
	w.base = w.commit()
	w.want(w.measure("baseline", "", nil), gate.NotMeasured, "baseline_red")
}

func TestSuiteFullRedFlakyHung(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	red := w.measure("suite.full", w.tree(func() { w.edit("calc.go", "return n * 2", "return n * 3") }), nil)
	w.want(red, gate.No, "gate_failed")
	if i := red.Issues[0]; i.File != "calc_test.go" || i.Line == 0 || len(i.Repro) == 0 {
		t.Errorf("issue %+v, want the assertion and a command", i)
	}
	// Red in the order in which the file has them, green in most others.
	flaky := w.tree(func() {
		w.edit("calc.go", "return n * 3", "return n * 2")
		w.write("order_test.go", `package calc

import "testing"

var ran int

func TestOrderA(t *testing.T) { ran++ }
func TestOrderB(t *testing.T) { ran++ }
func TestOrderC(t *testing.T) {
	if ran == 2 {
		t.Error("the others came first")
	}
}
`)
	})
	w.want(w.measure("suite.full", flaky, func(r *gates.Request) { r.Policy.Repeat = 6 }), gate.NotMeasured, "flaky")
	hung := w.tree(func() {
		w.write("order_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestHang(t *testing.T) { <-make(chan int) }\n\nfunc init() { go func() { for { } }() }\n")
	})
	w.want(w.measure("suite.full", hung, func(r *gates.Request) { r.Policy.Time = 5 * time.Second }), gate.NotMeasured, "timed_out")
}

// A suite that no mutant of the change turns red was not seen to refuse.
func TestSuiteFullBlind(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	blind := w.measure("suite.full", w.tree(func() { w.edit("calc.go", "\treturn n * 2\n}\n", "\treturn n * 2\n}\n"+honestCode) }), nil)
	w.want(blind, gate.NotMeasured, "gate_blind")
	// Without code to mutate, the runner itself is asked.
	words := w.measure("suite.full", w.tree(func() {
		w.edit("calc.go", honestCode, "")
		w.write("README.md", "calc\n")
	}), nil)
	w.proven(words)
	if words.Probe.Sabotage.Kind != evidence.SabotagePlanted {
		t.Errorf("probed with %+v", words.Probe.Sabotage)
	}
}

func TestTooLowIsNotMeasured(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	w.app.MaxLevel = evidence.LimitsOnly
	res := w.measure("secrets", w.honest(), func(r *gates.Request) { r.Policy.IsolationMin = evidence.Namespaces })
	w.want(res, gate.NotMeasured, "isolation_too_low")
	w.want(w.measure("suite.kept", w.base, func(r *gates.Request) { r.Policy.IsolationMin = evidence.Namespaces }), gate.NotMeasured, "isolation_too_low")
}

// A runner that always ends with 0 is blind, however green its tests are.
func TestBlindRunnerDecidesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t, "calc.txtar")
	hook := w.tree(func() {
		w.write("main_test.go", "package calc\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tm.Run()\n\tos.Exit(0)\n}\n")
	})
	w.want(w.measure("suite.full", hook, nil), gate.NotMeasured, "runner_blind")
	w.want(w.measure("suite.kept", hook, nil), gate.NotMeasured, "runner_blind")
}
