package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/policy"
)

// parse reads policies as they stand below "policies:".
func parse(t *testing.T, policies string) policy.Set {
	t.Helper()
	s, err := policy.Parse([]byte("version: 1\npolicies:\n" + policies))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func named(t *testing.T, s policy.Set, name string) policy.Policy {
	t.Helper()
	p, err := s.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestBuiltinDefaultIsWhatTheTextSays(t *testing.T) {
	t.Parallel()
	p := named(t, policy.Builtin(), "")
	if p.Name != policy.Default || p.OnReject != policy.Reopen || p.Unplanned != policy.UnplannedWaiver {
		t.Errorf("default = %s, %s, %s", p.Name, p.OnReject, p.Unplanned)
	}
	planner := policy.Stage{
		ID: "planner", Role: policy.Planner, Gates: []string{"plan.lint", "baseline"},
		Decide:        policy.Decide{Note: policy.NoteOptional},
		AgentProducer: &policy.Decide{Approvals: 1, Humans: 1, Note: policy.NoteOptional},
	}
	if diff := cmp.Diff(planner, p.Stages[0]); diff != "" {
		t.Errorf("planner (-want +got):\n%s", diff)
	}
	wantGates := map[string]policy.Gate{
		"baseline":           {Kind: policy.GateSuite, At: policy.AtBase, Tests: policy.TestsAll, Repeat: 2, Time: 20 * time.Minute},
		"build":              {Kind: policy.GateBuild, Time: 20 * time.Minute},
		"secrets":            {Kind: policy.GateSecrets},
		"suite.kept":         {Kind: policy.GateSuite, At: policy.AtSnapshot, Tests: policy.TestsBase, Repeat: 1, Time: 20 * time.Minute},
		"prove.requirements": {Kind: policy.GateProve, Requirements: true, WhenEmpty: policy.EmptyRefuse, Time: 20 * time.Minute},
		"prove.changed":      {Kind: policy.GateProve, MinProven: 0.8, MaxNotMeasured: 0.2, WhenEmpty: policy.EmptyPass, Time: 20 * time.Minute},
		"suite.full":         {Kind: policy.GateSuite, At: policy.AtSnapshot, Tests: policy.TestsAll, Repeat: 3, Time: 20 * time.Minute},
		"merge.preview":      {Kind: policy.GateMerge, Time: 20 * time.Minute},
	}
	if diff := cmp.Diff(wantGates, p.Gates); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	wantLimits := policy.Limits{
		Rounds: map[string]int{"planner": 3, "developer": 5}, Lease: 30 * time.Minute, RunTTL: 14 * 24 * time.Hour,
		DecisionSLA: 24 * time.Hour, Retries: 1, USD: 20, Parallel: 4, MaxScope: 0.4,
	}
	if diff := cmp.Diff(wantLimits, p.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if got := p.Upstream("reviewer"); !slices.Equal(got, []string{"planner", "developer", "verifier", "tester"}) {
		t.Errorf("upstream of the reviewer = %v", got)
	}
	if got := p.Upstream("tester"); !slices.Equal(got, []string{"planner", "developer"}) {
		t.Errorf("upstream of the tester = %v: it runs beside the verifier", got)
	}
}

func TestBuiltinManualRequiresNoGate(t *testing.T) {
	t.Parallel()
	p := named(t, policy.Builtin(), policy.Manual)
	var ids []string
	for _, s := range p.Stages {
		ids = append(ids, s.ID)
		if len(s.Gates) > 0 || s.Decide.Approvals != 1 || s.Decide.Humans != 0 || s.Decide.Engine {
			t.Errorf("stage %s has gates %v and is decided by %+v", s.ID, s.Gates, s.Decide)
		}
	}
	if !slices.Equal(ids, []string{"planner", "developer", "verifier", "tester", "reviewer"}) {
		t.Errorf("stages = %v", ids)
	}
	if p.OnReject != policy.Stay || p.Unplanned != policy.UnplannedNote || len(p.Separation) != 0 || len(p.Gates) != 0 {
		t.Errorf("manual = %+v", p)
	}
	if p.Limits.RunTTL != 0 || p.Limits.Retries != 1 {
		t.Errorf("run_ttl = %s, retries = %d, want its own 0 and default's 1", p.Limits.RunTTL, p.Limits.Retries)
	}
}

const short = `  short:
    stages:
      - {id: planner, role: planner, gates: [], decide: {approvals: 1}}
      - {id: work, role: developer, needs: [planner], gates: [fast], decide: engine}
    gates:
      fast: {kind: suite, repeat: 2}
`

func TestAPolicyTakesFromDefaultWhatItDoesNotSay(t *testing.T) {
	t.Parallel()
	s := parse(t, "  default:\n    limits: {retries: 3}\n    gates:\n      suite.full: {repeat: 9}\n"+short)
	p := named(t, s, "short")
	if p.Limits.Retries != 3 || p.Limits.Parallel != 4 || p.Unplanned != policy.UnplannedWaiver {
		t.Errorf("limits = %+v, unplanned = %s, want those of the file's default", p.Limits, p.Unplanned)
	}
	if len(p.Gates) != 1 || len(p.Stages) != 2 {
		t.Errorf("gates %v and %d stages; both are the policy's own", p.Gates, len(p.Stages))
	}
	if len(p.Separation) != 0 || p.Categories[policy.GraderFault] != policy.Operator || p.Categories[policy.PlanGap] != "planner" {
		t.Errorf("separation %v, categories %v: what names stages that are not here falls away", p.Separation, p.Categories)
	}
	d := named(t, s, "")
	if g := d.Gates["suite.full"]; g.Repeat != 9 || g.Time != 20*time.Minute || len(d.Stages) != 5 {
		t.Errorf("suite.full = %+v with %d stages, want the built-in one with its repeat changed", g, len(d.Stages))
	}
	if got := s.Names(); !slices.Equal(got, []string{"default", "manual", "short"}) {
		t.Errorf("names = %v", got)
	}
}

func TestErrorsNameThePlaceAndTheNearestName(t *testing.T) {
	t.Parallel()
	const stages = "    stages:\n      - {id: a, role: planner, gates: [], decide: {approvals: 1}}\n"
	for _, c := range []struct{ name, body, what, hint string }{
		{"key", "  default:\n    limts: {}\n", ".proveto/flow.yaml:4:5: unknown key limts", "did you mean limits?"},
		{"key below", "  default:\n    limits: {retrys: 1}\n", ".proveto/flow.yaml:4:14: unknown key limits.retrys", "did you mean limits.retries?"},
		{"word", "  default:\n    unplanned: waver\n", `4:16: unplanned is "waver", want one of: note, waiver, never`, "did you mean waiver?"},
		{"no unit", "  default:\n    limits: {lease: 30}\n", `limits.lease is "30", want a duration with units`, ""},
		{"wrong unit", "  default:\n    limits: {lease: 30w}\n", `limits.lease is "30w", want a duration`, ""},
		{"units backwards", "  default:\n    limits: {lease: 30s5m}\n", `limits.lease is "30s5m", want a duration`, ""},
		{"a unit twice", "  default:\n    limits: {lease: 5m5m}\n", `limits.lease is "5m5m", want a duration`, ""},
		{"too long", "  default:\n    limits: {lease: 99999d}\n", `limits.lease is "99999d", want a duration`, ""},
		{"endless lease", "  default:\n    limits: {lease: 0}\n", "limits.lease is 0", ""},
		{"share", "  default:\n    gates:\n      prove.changed: {min_proven: 1.5}\n", `5:35: gates.prove.changed.min_proven is "1.5", want a share from 0 to 1`, ""},
		{"negative", "  default:\n    limits: {usd: -1}\n", `limits.usd is "-1", want a number of at least 0`, ""},
		{"not a number", "  default:\n    limits: {max_scope: .nan}\n", "want a share from 0 to 1", ""},
		{"key of another kind", "  default:\n    gates:\n      secrets: {repeat: 2}\n", "unknown key gates.secrets.repeat", "known here: kind, time"},
		{"threshold of requirements", "  default:\n    gates:\n      prove.requirements: {min_proven: 0}\n", "unknown key gates.prove.requirements.min_proven", ""},
		{"kind", "  default:\n    gates:\n      x: {kind: suit}\n", `"suit", want one of`, "did you mean suite?"},
		{"no kind", "  default:\n    gates:\n      x: {repeat: 2}\n", "gates.x has no kind", ""},
		{"gate", "  x:\n    stages:\n      - {id: a, role: developer, gates: [plan.dif], decide: engine}\n", "5:41: stage a has the gate plan.dif, which is not defined", "did you mean plan.diff?"},
		{"need", "  x:\n" + stages + "      - {id: plan, role: developer, gates: [], decide: {approvals: 1}}\n      - {id: b, role: developer, needs: [plann], gates: [], decide: {approvals: 1}}\n", "stage b needs plann, which is no stage above it", "did you mean plan?"},
		{"need below", "  x:\n    stages:\n      - {id: a, role: planner, needs: [a], gates: [], decide: {approvals: 1}}\n", "stage a needs a, which is no stage above it", ""},
		{"twice", "  x:\n" + stages + "      - {id: a, role: developer, gates: [], decide: {approvals: 1}}\n", "6:14: stage a is there twice", ""},
		{"role", "  x:\n    stages:\n      - {id: a, role: planer, gates: [], decide: engine}\n", `"planer"`, "did you mean planner?"},
		{"no role", "  x:\n    stages:\n      - {id: a, gates: [], decide: engine}\n", "stage a has no role", ""},
		{"no decide", "  x:\n    stages:\n      - {id: a, role: planner, gates: []}\n", "stage a does not say who decides", ""},
		{"nothing to decide by", "  x:\n    stages:\n      - {id: a, role: planner, gates: [], decide: engine}\n", "stage a lets the engine decide and has no gate", ""},
		{"nobody", "  x:\n    stages:\n      - {id: a, role: reviewer, gates: [], decide: {approvals: 0}}\n", "stage a wants no approval", ""},
		{"more humans", "  x:\n    stages:\n      - {id: a, role: planner, gates: [], decide: {approvals: 1, humans: 2}}\n", "wants 2 humans among 1 approvals", ""},
		{"no tree", "  x:\n    stages:\n      - {id: a, role: planner, gates: [plan.diff], decide: engine}\n", "measures a tree", ""},
		{"no stages", "  x:\n    unplanned: note\n", "policy x has no stages", ""},
		{"reserved id", "  x:\n    stages:\n      - {id: operator, role: planner, gates: [], decide: {approvals: 1}}\n", `"operator"`, ""},
		{"risk lowers", "  default:\n    risk: {high: {reviewer: {approvals: 1, humans: 0}}}\n", "risk.high.reviewer asks for less than stage reviewer itself", ""},
		{"risk of no stage", "  default:\n    risk: {high: {reviewerr: {approvals: 2}}}\n", "names the stage reviewerr", "did you mean reviewer?"},
		{"risk level", "  default:\n    risk: {huge: {paths: []}}\n", `risk.huge is named "huge", want one of: low, medium, high`, ""},
		{"category", "  default:\n    categories: {defect: dev}\n", "categories.defect names the stage dev", ""},
		{"unknown category", "  default:\n    categories: {bug: developer}\n", "want one of: defect", ""},
		{"carry", "  default:\n    carry: {reviewer: [same_dif]}\n", `"same_dif"`, "did you mean same_diff?"},
		{"rounds", "  default:\n    limits: {rounds: {devloper: 2}}\n", "limits.rounds names the stage devloper", "did you mean developer?"},
		{"separation stage", "  default:\n    separation: [{distinct: [developer, boss], by: principal, on_violation: refuse}]\n", "separation names the stage boss", ""},
		{"separation of one", "  default:\n    separation: [{distinct: [developer], by: principal, on_violation: refuse}]\n", "keeps at least two stages apart", ""},
		{"probes", "  default:\n    commands: {lint: {run: [make, lint], probe: {mutant: true, break: build}}}\n", "commands.lint.probe has 2 keys", ""},
		{"no run", "  default:\n    commands: {lint: {probe: {mutant: true}}}\n", "commands.lint has no run", ""},
		{"grader", "  default:\n    graders: {g: {path: graders/g}}\n", "graders.g has no min", ""},
		{"path", "  default:\n    graders: {g: {path: ../g, min: 1}}\n", "without . and ..", ""},
		{"digest", "  default:\n    graders: {g: {path: g, min: 1, digest: abc}}\n", "want sha256:", ""},
		{"notice", "  default:\n    notify: [{on: [waiting]}]\n", "either exec or webhook_env", ""},
		{"twice the key", "  default:\n    unplanned: note\n    unplanned: never\n", "unplanned", ""},
		{"anchor", "  default: &a\n    unplanned: note\n", "anchor", ""},
		{"tag", "  default:\n    unplanned: !!str note\n", "tagged", ""},
		{"list for a mapping", "  default:\n    limits: [1]\n", "limits is a list, want names with values", ""},
		{"mapping for a word", "  default:\n    unplanned: {a: b}\n", "unplanned is names with values, want one of", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := policy.Parse([]byte("version: 1\npolicies:\n" + c.body))
			e := fault.From(err)
			if e == nil {
				t.Fatal("it was read")
			}
			if e.Kind != fault.Usage || e.Code != policy.CodeInvalid {
				t.Errorf("kind %s, code %s", e.Kind, e.Code)
			}
			if !strings.Contains(e.Error(), c.what) || !strings.Contains(e.Error(), ".proveto/flow.yaml:") {
				t.Errorf("error %q, want %q with its place", e.Error(), c.what)
			}
			if !strings.Contains(strings.Join(e.Hints, "\n"), c.hint) {
				t.Errorf("hints %q, want %q", e.Hints, c.hint)
			}
		})
	}
}

func TestTheOutsideOfAFile(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"policies: {}\n":                  "no version",
		"version: 2\n":                    `version is "2", want 1`,
		"version: 1\npolicy: {}\n":        "unknown key policy",
		"version: 1\npolicies: [a]\n":     "policies is a list",
		"a: [\n":                          ".proveto/flow.yaml:",
		"version: 1\n---\nversion: 1\n":   "second document",
		strings.Repeat(" ", 300<<10):      "at most 262144",
		"version: 1\npolicies: {A: {}}\n": `a policy is named "A"`,
		strings.Repeat("[", 5000):         "deep",
		strings.Repeat("- ", 100<<10):     "deep",
	} {
		if _, err := policy.Parse([]byte(body)); err == nil || !strings.Contains(err.Error(), want) || fault.From(err).Code != policy.CodeInvalid {
			t.Errorf("Parse(%.40q) = %v, want %q", body, err, want)
		}
	}
	for _, body := range []string{"", "# nothing\n", "version: 1\n", "version: 1\npolicies:\n", `{"version": 1, "policies": {"default": {"unplanned": "never"}}}`} {
		if _, err := policy.Parse([]byte(body)); err != nil {
			t.Errorf("Parse(%q) = %v", body, err)
		}
	}
	_, err := policy.Builtin().Named("manul")
	if e := fault.From(err); e == nil || e.Code != policy.CodeInvalid || !slices.Contains(e.Hints, "did you mean manual?") {
		t.Errorf("Named(manul) = %v", err)
	}
}

func TestAGateOfAnotherKindBeginsAnew(t *testing.T) {
	t.Parallel()
	p := named(t, parse(t, "  default:\n    gates:\n      suite.full: {kind: build}\n      prove.changed: {kind: prove, time: 5m}\n"), "")
	if diff := cmp.Diff(policy.Gate{Kind: policy.GateBuild, Time: 20 * time.Minute}, p.Gates["suite.full"]); diff != "" {
		t.Errorf("suite.full (-want +got):\n%s", diff)
	}
	if g := p.Gates["prove.changed"]; g.MinProven != 0.8 || g.WhenEmpty != policy.EmptyPass || g.Time != 5*time.Minute {
		t.Errorf("prove.changed = %+v, want the built-in one with its time changed", g)
	}
}

func TestACallerCannotChangeTheSet(t *testing.T) {
	t.Parallel()
	p := named(t, policy.Builtin(), "")
	p.Stages[0].Gates[0], p.Stages[0].AgentProducer.Humans, p.Protected[0] = "x", 9, "x"
	p.Gates["build"], p.Limits.Rounds["planner"], p.Categories[policy.Defect] = policy.Gate{}, 9, "x"
	p.Risk[policy.RiskHigh].Decide["reviewer"] = policy.Decide{}
	q := named(t, policy.Builtin(), "")
	if q.Stages[0].Gates[0] == "x" || q.Stages[0].AgentProducer.Humans == 9 || q.Protected[0] == "x" || q.Gates["build"].Kind == "" ||
		q.Limits.Rounds["planner"] == 9 || q.Categories[policy.Defect] == "x" || q.Risk[policy.RiskHigh].Decide["reviewer"].Approvals != 2 {
		t.Errorf("the built-in policy is now %s", q.Show())
	}
}

func TestARequiredCommandNeedsAProbe(t *testing.T) {
	t.Parallel()
	const stages = "    stages:\n      - {id: a, role: developer, gates: [GATES], decide: {approvals: 1}}\n"
	body := "  x:\n    commands:\n      lint: {run: [make, lint]}\n      ok: {run: [make, ok], probe: {break: build}}\n" + stages
	s := parse(t, strings.ReplaceAll(body, "GATES", "command.lint"))
	if _, err := s.Named("x"); fault.From(err) == nil || fault.From(err).Code != policy.CodeNotProven || fault.From(err).Kind != fault.Refused {
		t.Errorf("Named(x) = %v, want gate_not_proven", err)
	}
	p := named(t, parse(t, strings.ReplaceAll(body, "GATES", "command.ok")), "x")
	if g, ok := p.Gate("command.ok"); !ok || g.Kind != policy.GateCommand || g.Time != 10*time.Minute {
		t.Errorf("command.ok = %+v, %v", g, ok)
	}
	if c, _ := p.Command("command.ok"); c.Probe != (policy.Probe{Break: "build"}) {
		t.Errorf("probe = %+v", c.Probe)
	}
}

func TestWhoDecides(t *testing.T) {
	t.Parallel()
	p := named(t, policy.Builtin(), "")
	touches := func(what string) func([]string) bool {
		return func(patterns []string) bool { return slices.Contains(patterns, what) }
	}
	for _, c := range []struct {
		declared policy.RiskLevel
		pattern  string
		want     policy.RiskLevel
	}{{"low", "", "low"}, {"", "", "medium"}, {"low", "**/auth/**", "high"}, {"high", "", "high"}} {
		if got := p.RiskOf(c.declared, touches(c.pattern)); got != c.want {
			t.Errorf("risk of %q touching %q = %s, want %s", c.declared, c.pattern, got, c.want)
		}
	}
	reviewer, _ := p.Stage("reviewer")
	planner, _ := p.Stage("planner")
	one := policy.Decide{Approvals: 1, Humans: 1, Note: policy.NoteOptional}
	two := policy.Decide{Approvals: 2, Humans: 1, Note: policy.NoteOptional}
	for _, c := range []struct {
		stage policy.Stage
		risk  policy.RiskLevel
		agent bool
		want  policy.Decide
	}{
		{reviewer, policy.RiskMedium, true, one},
		{reviewer, policy.RiskHigh, false, two},
		{planner, policy.RiskHigh, false, policy.Decide{Note: policy.NoteOptional}},
		{planner, policy.RiskLow, true, one},
	} {
		if got := p.Decides(c.stage, c.risk, c.agent); got != c.want {
			t.Errorf("%s at risk %s, agent %v: %+v, want %+v", c.stage.ID, c.risk, c.agent, got, c.want)
		}
	}
	q := named(t, parse(t, "  default:\n    risk: {high: {verifier: {approvals: 1, note: required}}}\n"), "")
	verifier, _ := q.Stage("verifier")
	if got := q.Decides(verifier, policy.RiskHigh, false); got != (policy.Decide{Approvals: 1, Note: policy.NoteRequired}) {
		t.Errorf("verifier at high risk: %+v, want a person beside the gates", got)
	}
	if got := q.Decides(verifier, policy.RiskMedium, false); !got.Engine {
		t.Errorf("verifier at medium risk: %+v, want the engine", got)
	}
	if p.EmptyPasses("prove.requirements", "behaviour") || !p.EmptyPasses("prove.requirements", "docs") || !p.EmptyPasses("prove.changed", "behaviour") || p.EmptyPasses("none", "docs") {
		t.Error("what an empty gate says")
	}
}

func TestShowReadsBackAsTheSame(t *testing.T) {
	t.Parallel()
	s := parse(t, short+`  full:
    on_reject: stay
    stages:
      - {id: a, role: developer, gates: [build, grader.g, command.c, "suite.x"], decide: {approvals: 2, humans: 1, note: required}, agent_producer: engine}
      - {id: b, role: reviewer, needs: [a], decide: {approvals: 1}}
    gates:
      build: {kind: build, run: [sh, -c, "a: {b} # c, 'd' \"e\" \\ é <&>"], time: 90m}
      suite.x: {kind: suite, at: snapshot, tests: base, time: 0}
      p: {kind: prove, min_proven: 0, max_refuted: 3, max_not_measured: 0.05, when_empty: pass}
    graders:
      g: {path: graders/g, digest: "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", min: -1.5, direction: minimize, known_bad: [a/b, "yes"]}
    commands:
      c: {run: ["true"], probe: {patch: probes/c.patch}, time: 1h1m1s}
      d: {run: ["1", "null", "-"], probe: {mutant: true}}
    separation:
      - {distinct: [a, b], by: launch, on_violation: report}
    risk: {low: {a: {approvals: 2, humans: 2}}, high: {paths: []}}
    categories: {defect: a, environment: operator}
    carry: {a: [same_tree, same_diff]}
    limits: {rounds: {a: 7}, usd: 0.5, lease: 49h, decision_sla: 0}
    notify: [{on: [waiting, blocked], exec: [sh, -c, "echo 1"]}, {on: [approved], webhook_env: HOOK, hmac_env: KEY}]
`)
	for _, name := range s.Names() {
		p := named(t, s, name)
		again, err := policy.Parse([]byte(p.Show()))
		if err != nil {
			t.Fatalf("%s is shown as what cannot be read: %v\n%s", name, err, p.Show())
		}
		if diff := cmp.Diff(p, named(t, again, name)); diff != "" {
			t.Errorf("%s shown and read (-want +got):\n%s", name, diff)
		}
		body, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var q policy.Policy
		if err := json.Unmarshal(body, &q); err != nil {
			t.Fatalf("%s as JSON: %v\n%s", name, err, body)
		}
		if diff := cmp.Diff(p, q); diff != "" {
			t.Errorf("%s as JSON and read (-want +got):\n%s", name, diff)
		}
	}
}

func TestDigestsTellValuesApart(t *testing.T) {
	t.Parallel()
	digest := func(policies string) string {
		t.Helper()
		d, err := named(t, parse(t, policies), "").Digest()
		if err != nil {
			t.Fatal(err)
		}
		return string(d)
	}
	same := digest("  default: {unplanned: waiver}\n")
	if same != digest("  default:\n    gates:\n      build: {time: 1200s}\n") {
		t.Error("the same values have two digests")
	}
	if same == digest("  default: {unplanned: never}\n") {
		t.Error("two policies have one digest")
	}
	p := named(t, policy.Builtin(), "")
	gate := func(p policy.Policy, name string, versions ...string) string {
		t.Helper()
		d, err := p.GateDigest(name, versions...)
		if err != nil {
			t.Fatal(err)
		}
		return string(d)
	}
	seen := map[string]string{}
	for what, d := range map[string]string{
		"build": gate(p, "build"), "build go1": gate(p, "build", "go1"), "build go2": gate(p, "build", "go2"),
		"suite.full": gate(p, "suite.full"), "plan.lint": gate(p, "plan.lint"),
		"suite.full 9": gate(named(t, parse(t, "  default:\n    gates:\n      suite.full: {repeat: 9}\n"), ""), "suite.full"),
	} {
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", what, other)
		}
		seen[d] = what
	}
	if gate(p, "build", "a", "b") != gate(p, "build", "b", "a", "a") {
		t.Error("the order of versions makes a difference")
	}
	if _, err := p.GateDigest("none"); err == nil {
		t.Error("a gate that is not there has a digest")
	}
}
