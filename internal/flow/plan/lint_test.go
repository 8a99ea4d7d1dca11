package plan

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// base are the paths of a small repository in which the sample contract is sound.
var base = []string{
	".proveto/flow.yaml", "README.md", "auth/auth.go", "auth/auth_test.go", "cmd/main.go", "docs/a.md", "docs/b.md", "go.mod", "go.sum",
	"graders/oauth/grade.py", "web/a.go", "web/a_test.go", "web/b.go", "web/c.go",
}

func rules(t tester) Rules {
	t.Helper()
	return Rules{Protected: set(t, "proveto.yaml", ".proveto/**", "ci/**"), DocsPaths: set(t, "**/*.md", "docs/**"), MaxScope: 0.4}
}

func lint(t tester, text string, p Rules) []Problem {
	t.Helper()
	out, err := Lint(parse(t, text), base, p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLintOfTheSampleIsClean(t *testing.T) {
	t.Parallel()
	if got := lint(t, sample(t), rules(t)); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

func TestLintNamesEachFault(t *testing.T) {
	t.Parallel()
	edit := func(old, now string) string {
		s := sample(t)
		if !strings.Contains(s, old) {
			t.Fatalf("the sample has no %q", old)
		}
		return strings.Replace(s, old, now, 1)
	}
	doc := func(kind, paths, more string) string {
		return "version: 1\ngoal: g\nkind: " + kind + "\nrequirements: [{id: R1, text: t}]\nscope: [{id: S1, paths: " + paths + ", ops: [create, modify], for: [R1]}]\n" + more
	}
	guarded := rules(t)
	guarded.Guarded = true
	for name, c := range map[string]struct {
		text string
		p    Rules
		want Fault // empty: an honest twin
		says string
	}{
		"id twice":                 {edit("id: A2", "id: A1"), rules(t), IDTwice, "A1 is the id of an acceptance of R1 and of an acceptance of R1"},
		"id of two kinds":          {edit("id: S2", "id: R1"), rules(t), IDTwice, "R1 is the id of a requirement and of a scope rule"},
		"undeclared requirement":   {edit("for: [R1], max", "for: [R1, R9], max"), rules(t), RequirementUnknown, "scope rule S1 is for R9"},
		"no requirement":           {edit("for: [R1], max", "max"), rules(t), ScopeUnbound, "scope rule S1"},
		"invariant is enough":      {edit("for: [R1], max", "for: [I1], max"), rules(t), "", ""},
		"no acceptance":            {doc("behaviour", "[auth/x.go]", ""), rules(t), AcceptanceMissing, "requirement R1"},
		"acceptance by a human":    {strings.Replace(doc("behaviour", "[auth/x.go]", ""), "text: t", "text: t, acceptance: [{id: A1, human: x, role: reviewer}]", 1), rules(t), AcceptanceMissing, "requirement R1"},
		"other kinds need none":    {doc("refactor", "[auth/auth.go]", ""), rules(t), "", ""},
		"named path missing":       {edit("paths: [go.mod, go.sum]", "paths: [go.mod, gone.sum]"), rules(t), PathMissing, "scope rule S2 names gone.sum"},
		"named path to be made":    {edit("paths: [go.mod, go.sum], ops: [modify]", "paths: [go.mod, new.sum], ops: [modify, create]"), rules(t), "", ""},
		"path exists":              {edit("paths: [\"auth/oauth_test.go\"]", "paths: [auth/oauth_test.go, auth/auth.go]"), rules(t), PathExists, "auth/auth.go"},
		"grader missing":           {edit("grader: graders/oauth", "grader: graders/none"), rules(t), PathMissing, "the grader graders/none"},
		"test passes, is missing":  {edit("before: fails", "before: passes"), rules(t), PathMissing, "auth/oauth_test.go is not at the base"},
		"test passes, is there":    {edit("auth/oauth_test.go::TestExpiredToken\", before: fails", "auth/auth_test.go::TestX\", before: passes"), rules(t), "", ""},
		"test cannot come":         {edit("auth/oauth_test.go::", "lib/oauth_test.go::"), rules(t), TestMissing, "lib/oauth_test.go"},
		"absent":                   {edit("before: fails", "before: absent"), rules(t), "", ""},
		"absent without a symbol":  {strings.Replace(edit("before: fails", "before: absent"), "change: add", "change: modify", 1), rules(t), AbsentWithoutSymbol, "acceptance A1"},
		"too wide":                 {edit("\"auth/**\"", "\"{auth,web,docs}/**\""), rules(t), ScopeTooWide, "57% of the base's 14 files"},
		"too wide in pieces":       {edit("\"auth/**\"", "\"auth/**\", \"web/**\", \"docs/*\""), rules(t), ScopeTooWide, "57%"},
		"many named files":         {edit("\"auth/**\"", "auth/auth.go, web/a.go, web/b.go, web/c.go, docs/a.md, docs/b.md, README.md"), rules(t), "", ""},
		"proveto.yaml":             {edit("\"auth/**\"", "\"auth/**\", proveto.yaml"), rules(t), PathProtected, "opens proveto.yaml"},
		"policy, other case":       {edit("\"auth/**\"", "\"auth/**\", .Proveto/flow.yaml"), rules(t), PathProtected, ".Proveto/flow.yaml"},
		"policy by a pattern":      {edit("paths: [go.mod,", "paths: [\"*/*.yaml\", go.mod,"), rules(t), PathProtected, "opens .proveto/flow.yaml"},
		"policy's own, not there":  {edit("paths: [go.mod,", "paths: [\"ci/*.sh\", go.mod,"), rules(t), PathProtected, "ci/*.sh"},
		"grader of the plan":       {edit("paths: [go.mod,", "paths: [\"graders/oauth/*\", go.mod,"), rules(t), PathProtected, "graders/oauth"},
		"pattern that only may":    {edit("paths: [go.mod,", "paths: [\"c?/run.sh\", go.mod,"), rules(t), "", ""},
		"guarded, of its own":      {doc("config", "[proveto.yaml, \".proveto/**\"]", ""), guarded, "", ""},
		"guarded, with others":     {doc("config", "[proveto.yaml, web/a.go]", ""), guarded, PathProtected, "run of its own"},
		"not guarded":              {doc("config", "[proveto.yaml]", ""), rules(t), PathProtected, "proveto.yaml"},
		"refactor with interfaces": {doc("refactor", "[auth/auth.go]", "interfaces: [{symbol: auth.X, change: modify}]"), rules(t), RefactorInterface, "modify auth.X"},
		"refactor with a test":     {doc("refactor", "[auth/auth.go, auth/auth_test.go]", ""), rules(t), RefactorTest, "auth/auth_test.go"},
		"refactor with a new test": {doc("refactor", "[auth/auth.go, auth/more_test.go]", ""), rules(t), "", ""},
		"docs":                     {doc("docs", "[\"docs/**\", \"*.md\", CHANGES.md]", ""), rules(t), "", ""},
		"docs with code":           {doc("docs", "[docs/x.md, \"auth/*.{md,go}\"]", ""), rules(t), DocsPath, "auth/*.{md,go}"},
		"config":                   {doc("config", "[Makefile]", ""), rules(t), "", ""},
		"dependency twice":         {edit("bump: []", "bump: [golang.org/x/oauth2]"), rules(t), DependencyTwice, "in add and in bump"},
		"nothing asked":            {"version: 1\ngoal: g\n", rules(t), NothingAsked, "no requirement"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lint(t, c.text, c.p)
			if c.want == "" {
				if len(got) > 0 {
					t.Errorf("an honest plan has problems: %v", got)
				}
				return
			}
			found := false
			for _, p := range got {
				if p.Fault != c.want {
					t.Errorf("also said: %v", p)
				}
				found = found || p.Fault == c.want && strings.Contains(p.Message, c.says)
			}
			if !found && len(got) > 0 {
				t.Errorf("no problem says %q: %v", c.says, got)
			}
			if len(got) == 0 || Clean(got) != (c.want == PathExists) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestLintOfAnEmptyBaseStillHasAnOutside(t *testing.T) {
	t.Parallel()
	doc := func(paths string) string {
		return "version: 1\ngoal: g\nkind: config\nrequirements: [{id: R1, text: t}]\nscope: [{id: S1, paths: " + paths + ", ops: [create], for: [R1]}]\n"
	}
	for paths, wide := range map[string]bool{`["**"]`: true, `["*", "*/**"]`: true, `["src/**", "*"]`: false, `[a, b]`: false} {
		p := rules(t)
		p.Protected = nil
		got, err := Lint(parse(t, doc(paths)), nil, p)
		if err != nil {
			t.Fatal(err)
		}
		if wide != (len(got) == 1 && got[0].Fault == ScopeTooWide) || !wide && len(got) > 0 {
			t.Errorf("%s: got %v", paths, got)
		}
	}
}

func TestLintProbeIsRefused(t *testing.T) {
	t.Parallel()
	good := parse(t, sample(t))
	bad := LintProbe(good)
	problems, err := Lint(bad, base, rules(t))
	if err != nil {
		t.Fatal(err)
	}
	if Clean(problems) || problems[0].Fault != RequirementUnknown || len(problems) != 1 {
		t.Errorf("the probe gives %v", problems)
	}
	if again := lint(t, sample(t), rules(t)); len(again) > 0 || len(good.Scope) != 3 {
		t.Error("making the probe changed the contract")
	}
	text, err := bad.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	parse(t, string(text)) // it is a contract that can be submitted
}

func TestLintProbeOfEveryContractIsRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		problems, err := Lint(LintProbe(contracts().Draw(t, "contract")), nil, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if p.Fault == RequirementUnknown && strings.Contains(p.Message, "probe") {
				return
			}
		}
		t.Fatalf("the probe is not named: %v", problems)
	})
}

func TestSkeletonParsesOnceFilled(t *testing.T) {
	t.Parallel()
	for _, task := range []string{"Add OAuth login", "two\nlines: \"x\" # no comment\u2028\U0001f600", "@GOAL@ {a: b}"} {
		blank, err := Skeleton(task)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("plan.yaml", blank); err == nil || !strings.Contains(err.Error(), "text is blank") {
			t.Errorf("an empty skeleton is read: %v", err)
		}
		s := string(blank)
		for _, fill := range [][2]string{
			{`text: ""`, `text: "it holds"`},
			{`test: ""`, `test: "auth/oauth_test.go::TestX"`},
			{`paths: [""]`, `paths: ["auth/**"]`},
		} {
			if !strings.Contains(s, fill[0]) {
				t.Fatalf("the skeleton has no %s", fill[0])
			}
			s = strings.Replace(s, fill[0], fill[1], 1)
		}
		c := parse(t, s)
		if c.Goal != task {
			t.Errorf("goal is %q, want %q", c.Goal, task)
		}
		if got := lint(t, s, rules(t)); len(got) > 0 {
			t.Errorf("a filled skeleton has problems: %v", got)
		}
		// What is commented out can be used as it is.
		s = strings.NewReplacer("# - {", "- {", "# max_added", "max_added", "# required", "required").Replace(s)
		if c := parse(t, s); len(c.Requirements[0].Acceptance) != 4 || !c.Scope[0].Required || *c.Scope[0].MaxAdded != 400 {
			t.Errorf("what the comments offer reads as %+v", c)
		}
	}
}

func TestDiffOfRevisions(t *testing.T) {
	t.Parallel()
	old := parse(t, sample(t))
	now := parse(t, strings.NewReplacer(
		`"auth/**"], ops: [create, modify]`, `"auth/**", "web/*.go"], ops: [modify]`,
		"max_added: 600", "max_added: 700",
		"go.sum], ops: [modify], for: [R1]}", "go.sum], ops: [modify], for: [R1]}\n  - {id: S4, paths: [x], ops: [create], for: [R1]}",
		"change: add", "change: modify",
		"non_goals: [SAML]", "",
	).Replace(sample(t)))
	all, err := Diff(old, now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range all {
		got = append(got, d.String())
	}
	want := `~ interfaces.auth.Login.change: "add" -> "modify"
- non_goals.SAML: "SAML"
~ scope.S1.max_added: 600 -> 700
- scope.S1.ops.create: "create"
+ scope.S1.paths.web/*.go: "web/*.go"
+ scope.S4.for.R1: "R1"
+ scope.S4.id: "S4"
+ scope.S4.ops.create: "create"
+ scope.S4.paths.x: "x"`
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("got:\n%s\nwant:\n%s", g, want)
	}
	if same, err := Diff(old, old); err != nil || len(same) > 0 {
		t.Errorf("a contract differs from itself: %v %v", same, err)
	}
}

func TestDiffSeesWhateverChangesTheID(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := contracts().Draw(t, "a"), contracts().Draw(t, "b")
		x, err := a.ID()
		if err != nil {
			t.Fatal(err)
		}
		y, err := b.ID()
		if err != nil {
			t.Fatal(err)
		}
		d, err := Diff(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if x == y && len(d) > 0 {
			t.Fatalf("equal contracts differ: %v", d)
		}
	})
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	a := parse(t, "version: 1\ngoal: g\nscope: [{id: S1, paths: [\"auth/**\", go.mod], ops: [modify]}, {id: S2, paths: [web/a.go], ops: [modify]}]\n")
	b := parse(t, "version: 1\ngoal: g\nscope: [{id: T1, paths: [\"*/*_test.go\"], ops: [create]}, {id: T2, paths: [\"go.*\"], ops: [modify]}]\n")
	got, err := Overlaps(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := []Overlap{{"S1", "T1", "auth/**", "*/*_test.go"}, {"S1", "T2", "go.mod", "go.*"}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, err := Overlaps(a, Manual("t", "")); err != nil || len(got) > 0 {
		t.Errorf("a manual plan overlaps: %v %v", got, err)
	}
	if id, err := a.Reaches(set(t, "**/auth/**")); err != nil || id != "S1" {
		t.Errorf("reaches %q (%v), want S1", id, err)
	}
	if id, err := a.Reaches(set(t, "**/migrations/**", "ci/*")); err != nil || id != "S1" {
		t.Errorf("reaches %q (%v), want S1: auth/migrations/x may be named", id, err)
	}
	if id, err := a.Reaches(set(t, "ci/*")); err != nil || id != "" {
		t.Errorf("reaches %q (%v), want none", id, err)
	}
}
