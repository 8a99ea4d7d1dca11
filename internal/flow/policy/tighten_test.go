package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow/policy"
)

const reviewed = `    stages:
      - {id: planner, role: planner, gates: [plan.lint, baseline], decide: {approvals: 0}, agent_producer: {approvals: 1, humans: 1}}
      - {id: developer, role: developer, needs: [planner], gates: [plan.diff, build, secrets, suite.kept], decide: engine}
      - {id: verifier, role: verifier, needs: [developer], gates: [prove.requirements, prove.changed], decide: engine}
      - {id: tester, role: tester, needs: [developer], gates: [suite.full], decide: engine}
`

// TestLoosens holds one key of a policy against the built-in default; want is the
// key that is found looser, nothing when the change tightens.
func TestLoosens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{"    on_reject: stay\n", "on_reject: reopen → stay"},
		{"    unplanned: note\n", "unplanned: waiver → note"},
		{"    unplanned: never\n", ""},
		{"    gates: {prove.changed: {min_proven: 0.1}}\n", "gates.prove.changed.min_proven: 0.8 → 0.1"},
		{"    gates: {prove.changed: {min_proven: 0.9}}\n", ""},
		{"    gates: {prove.changed: {max_refuted: 1}}\n", "gates.prove.changed.max_refuted: 0 → 1"},
		{"    gates: {prove.changed: {max_not_measured: 0.3}}\n", "gates.prove.changed.max_not_measured: 0.2 → 0.3"},
		{"    gates: {prove.requirements: {when_empty: pass}}\n", "gates.prove.requirements.when_empty: refuse → pass"},
		{"    gates: {prove.changed: {when_empty: refuse}}\n", ""},
		{"    gates: {suite.full: {repeat: 1}}\n", "gates.suite.full.repeat: 3 → 1"},
		{"    gates: {suite.full: {repeat: 4, time: 1h}}\n", ""},
		{"    gates: {suite.kept: {tests: all}}\n", "gates.suite.kept.tests: base → all"},
		{"    gates: {build: {run: [\"true\"]}}\n", `gates.build.run: nothing → ["true"]`},
		{"    gates: {suite.full: {kind: build}}\n", "gates.suite.full.kind: suite → build"},
		{"    limits: {retries: 2}\n", "limits.retries: 1 → 2"},
		{"    limits: {retries: 0, usd: 1, parallel: 1, rounds: {developer: 1}, max_scope: 0.1, run_ttl: 1d}\n", ""},
		{"    limits: {run_ttl: 0}\n", "limits.run_ttl: 14d → 0"},
		{"    limits: {run_ttl: 15d}\n", "limits.run_ttl: 14d → 15d"},
		{"    limits: {usd: 21}\n", "limits.usd: 20 → 21"},
		{"    limits: {max_scope: 0.5}\n", "limits.max_scope: 0.4 → 0.5"},
		{"    limits: {rounds: {developer: 6}}\n", "limits.rounds.developer: 5 → 6"},
		{"    limits: {rounds: {verifier: 6}}\n", ""},
		{"    isolation: {min: limits}\n", "isolation.min: namespaces → limits"},
		{"    separation: []\n", "separation: {distinct: [developer, verifier, reviewer], by: principal, on_violation: refuse} → nothing"},
		{"    separation:\n      - {distinct: [developer, verifier, tester, reviewer], by: principal, on_violation: refuse}\n      - {distinct: [developer, reviewer], by: operator, on_violation: refuse}\n      - {distinct: [developer, reviewer], by: model, on_violation: report}\n", ""},
		{"    separation:\n      - {distinct: [developer, verifier, reviewer], by: principal, on_violation: report}\n      - {distinct: [developer, reviewer], by: operator, on_violation: report}\n      - {distinct: [developer, reviewer], by: model, on_violation: report}\n", "separation: {distinct: [developer, verifier, reviewer], by: principal, on_violation: refuse} → nothing"},
		{"    protected: [proveto.yaml]\n", `protected: [proveto.yaml, ".proveto/**"] → [proveto.yaml]`},
		{"    protected: [\".proveto/**\", proveto.yaml, go.mod]\n", ""},
		{"    docs_paths: [\"**\"]\n", `docs_paths: ["**/*.md", "docs/**"] → ["**"]`},
		{"    docs_paths: []\n", ""},
		{"    risk: {high: {paths: []}}\n", `risk.high.paths: ["**/auth/**", "**/migrations/**", ".github/**"] → []`},
		{"    risk: {high: {reviewer: {approvals: 1}}}\n", "risk.high.reviewer.approvals: 2 → 1"},
		{"    risk: {high: {reviewer: {approvals: 3, humans: 2}}, medium: {reviewer: {approvals: 2, humans: 1}}}\n", ""},
		{"    carry: {reviewer: []}\n", ""},
		{"    carry: {tester: [same_diff]}\n", "carry.tester: [same_tree] → [same_diff]"},
		{"    carry: {developer: [same_tree]}\n", "carry.developer: nothing → [same_tree]"},
		{"    categories: {defect: operator}\n", "categories.defect: developer → operator"},
		{"    notify: [{on: [waiting], exec: [beep]}]\n", ""},
		{reviewed, "stages.reviewer: {id: reviewer,"},
		{reviewed + "      - {id: reviewer, role: reviewer, needs: [verifier, tester], gates: [findings.closed, merge.preview], decide: {approvals: 2, humans: 1, note: required}}\n", ""},
		{reviewed + "      - {id: reviewer, role: reviewer, needs: [verifier], gates: [findings.closed, merge.preview], decide: {approvals: 1, humans: 1}}\n", "stages.reviewer.needs: [verifier, tester] → [verifier]"},
		{reviewed + "      - {id: reviewer, role: reviewer, needs: [verifier, tester], gates: [merge.preview], decide: {approvals: 1, humans: 1}}\n", "stages.reviewer.gates: [findings.closed, merge.preview] → [merge.preview]"},
		{reviewed + "      - {id: reviewer, role: reviewer, needs: [verifier, tester], gates: [findings.closed, merge.preview], decide: {approvals: 1}}\n", "stages.reviewer.decide.humans: 1 → 0"},
		{reviewed + "      - {id: reviewer, role: reviewer, needs: [verifier, tester], gates: [findings.closed, merge.preview], decide: engine}\n", "stages.reviewer.decide: {approvals: 1, humans: 1, note: optional} → engine"},
		{reviewed + "      - {id: reviewer, role: verifier, needs: [verifier, tester], gates: [findings.closed, merge.preview], decide: {approvals: 1, humans: 1}}\n", "stages.reviewer.role: reviewer → verifier"},
		{strings.Replace(reviewed, ", agent_producer: {approvals: 1, humans: 1}", "", 1) + "      - {id: reviewer, role: reviewer, needs: [verifier, tester], gates: [findings.closed, merge.preview], decide: {approvals: 1, humans: 1}}\n", "stages.planner.agent_producer.approvals: 1 → 0"},
	} {
		text := "  default:\n" + c.body
		if strings.HasPrefix(c.want, "stages.reviewer: ") { // without the stage, what names it has to go as well
			text += "    separation: []\n    risk: {high: {paths: []}}\n    carry: {}\n"
		}
		old := named(t, policy.Builtin(), "")
		file := []byte("version: 1\npolicies:\n" + text)
		s, err := policy.Parse(file)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := policy.Loosens(old, named(t, s, ""))
		if (c.want == "") != (len(got) == 0) || c.want != "" && !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s loosens %q, want %q", text, got, c.want)
		}
		_, err = policy.Builtin().Overlay(file)
		switch e := fault.From(err); {
		case c.want == "" && err != nil:
			t.Errorf("overlay %s: %v", text, err)
		case c.want != "" && (err == nil || e.Code != policy.CodeLoosens || e.Kind != fault.Usage || !strings.Contains(e.Error(), strings.SplitN(c.want, ":", 2)[0])):
			t.Errorf("overlay %s = %v, want overlay_loosens naming %s", text, err, c.want)
		}
	}
}

func TestOverlay(t *testing.T) {
	t.Parallel()
	base := parse(t, short)
	s, err := base.Overlay([]byte("version: 1\npolicies:\n  default: {unplanned: never}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := named(t, s, "").Unplanned; got != policy.UnplannedNever {
		t.Errorf("unplanned = %s, want what the local file tightened", got)
	}
	if diff := cmp.Diff(named(t, base, "short"), named(t, s, "short")); diff != "" {
		t.Errorf("a policy that the local file does not name changed:\n%s", diff)
	}
	if got := named(t, base, "").Unplanned; got != policy.UnplannedWaiver {
		t.Errorf("the set below changed: %s", got)
	}
	for body, want := range map[string]struct {
		code fault.Code
		what string
	}{
		strings.ReplaceAll(short, "short", "mine"): {policy.CodeLoosens, ".proveto/flow.local.yaml:4:11: the policy mine is added"},
		"  default: {unplaned: never}\n":           {policy.CodeInvalid, ".proveto/flow.local.yaml:3:13: unknown key unplaned"},
	} {
		if _, err := base.Overlay([]byte("version: 1\npolicies:\n" + body)); err == nil || fault.From(err).Code != want.code || !strings.Contains(err.Error(), want.what) {
			t.Errorf("Overlay(%q) = %v, want %s %q", body, err, want.code, want.what)
		}
	}
	if s, err := base.Overlay(nil); err != nil || len(s.Names()) != 3 {
		t.Errorf("an empty overlay: %v, %v", s.Names(), err)
	}
}

// TestNoPolicyIsLooserThanItself holds for what [policy.Loosens] may not find.
func TestNoPolicyIsLooserThanItself(t *testing.T) {
	t.Parallel()
	s := parse(t, short)
	for _, name := range s.Names() {
		if got := policy.Loosens(named(t, s, name), named(t, s, name)); len(got) > 0 {
			t.Errorf("%s loosens itself: %q", name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("version: 1\npolicies:\n" + short))
	f.Add([]byte("version: 1\npolicies:\n  default:\n    risk: {high: {paths: [\"**\"], reviewer: {approvals: 2}}}\n"))
	f.Add([]byte("version: 1\npolicies: {default: {commands: {a: {run: [x], probe: {patch: a}}}}}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := policy.Parse(body)
		if err != nil {
			if fault.From(err).Code != policy.CodeInvalid {
				t.Fatalf("an error without its code: %v", err)
			}
			return
		}
		for _, name := range s.Names() {
			p, err := s.Named(name)
			if err != nil {
				continue
			}
			again, err := policy.Parse([]byte(p.Show()))
			if err != nil {
				t.Fatalf("%v\n%s", err, p.Show())
			}
			q, err := again.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, q); diff != "" {
				t.Fatalf("shown and read (-want +got):\n%s", diff)
			}
		}
	})
}
