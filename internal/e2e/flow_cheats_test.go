package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cheat is a change that breaks its contract in one way, and its honest twin.
type cheat struct {
	name  string
	bad   string // script that makes the change
	code  string // that the refusal names
	names string // what else the refusal names: a path
	twin  string // script of the honest change
	plan  string // extra lines of the contract, for both
}

var cheats = []cheat{
	{
		name: "weakens a test", code: "P011", names: "token/kind_test.go",
		bad:  `sed -i 's/!Known("bearer") || Known("x")/!Known("bearer")/' token/kind_test.go`,
		twin: `sed -i 's/!Known("bearer") || Known("x")/!Known("bearer") || Known("x") || Known("")/' token/kind_test.go`,
	},
	{
		name: "skips a test", code: "P011", names: "token/kind_test.go",
		bad:  `sed -i 's/^func TestKnown(t \*testing.T) {/&\n\tt.Skip("later")/' token/kind_test.go`,
		twin: `printf '\nfunc TestEmpty(t *testing.T) {\n\tif Known("") {\n\t\tt.Error("empty is known")\n\t}\n}\n' >> token/kind_test.go`,
	},
	{
		name: "hides a test behind a build tag", code: "P011", names: "token/kind_test.go",
		bad:  `printf '//go:build never\n\n%s\n' "$(cat token/kind_test.go)" > token/kind_test.go`,
		twin: `printf '// Tests of kinds.\n\n%s\n' "$(cat token/kind_test.go)" > token/kind_test.go`,
	},
	{
		name: "leaves the scope", code: "P001", names: "other/other.go",
		bad:  `mkdir other; printf 'package other\n' > other/other.go`,
		twin: `mkdir token/sub; printf '// Package sub is new.\npackage sub\n' > token/sub/sub.go`,
	},
	{
		name: "does what its rule does not allow", code: "P002", names: "token/kind_test.go",
		bad:  `git rm -q token/kind_test.go`,
		twin: `printf '\nvar _ = Known\n' >> token/kind_test.go`,
	},
	{
		name: "edits the policy", code: "P003", names: ".proveto/flow.yaml",
		bad:  `sed -i 's/gates: \[plan.diff\]/gates: []/' .proveto/flow.yaml`,
		twin: `printf '// Names.\n' > token/doc.txt`,
	},
	{
		name: "makes itself a principal", code: "P003", names: ".proveto/principals.yaml",
		bad:  `printf '  mallory: {kind: human, roles: [reviewer]}\n' >> .proveto/principals.yaml`,
		twin: `printf 'mallory\n' > token/names.txt`,
	},
	{
		name: "adds an undeclared dependency", code: "P006", names: "go.mod",
		bad:  `printf '\nrequire example.org/evil v1.0.0\n' >> go.mod`,
		twin: `printf '\nrequire example.org/good v1.0.0\n' >> go.mod`,
		plan: `dependencies: {add: ["example.org/good"]}`,
	},
	{
		name: "changes an exported symbol unannounced", code: "P007", names: "token/kind.go",
		bad:  `sed -i 's/func Known(kind string) bool/func Known(kind string, more ...string) bool/' token/kind.go`,
		twin: `sed -i 's/kind == "bearer"/kind == "bearer" || kind == "mac"/' token/kind.go`,
	},
	{
		name: "hides behind attributes", code: "P001", names: "secret/back.go",
		bad:  `mkdir secret; printf '* -diff\nsecret/** export-ignore binary\n' > token/.gitattributes; printf 'secret/** -diff export-ignore binary linguist-generated\n' > .git/info/attributes; printf 'package secret\n' > secret/back.go`,
		twin: `printf 'package token\n' > token/front.go`,
	},
	{
		name: "hides behind assume-unchanged", code: "P001", names: "go.sum",
		bad:  `printf 'x\n' > go.sum; git add -N go.sum; git update-index --assume-unchanged go.mod; printf '// x\n' >> go.mod; printf 'example.org/x v1.0.0 h1:x=\n' > go.sum`,
		twin: `printf 'package token\n' > token/front.go; git add -N token/front.go; git update-index --assume-unchanged token/kind.go`,
	},
	{
		name: "hides behind a symlink", code: "P010", names: "token/link.go",
		bad:  `ln -s /etc/passwd token/link.go`,
		twin: `printf 'package token\n' > token/link.go`,
	},
	{
		name: "makes a file executable", code: "P010", names: "token/kind.go",
		bad:  `chmod +x token/kind.go`,
		twin: `printf '// End.\n' >> token/kind.go`,
	},
	{
		name: "collides in case", code: "P013", names: "token/KIND.go",
		bad:  `printf 'package token\n' > token/KIND.go`,
		twin: `printf 'package token\n' > token/KINDS.go`,
	},
}

// TestFlowCheats hands in every cheat and its twin under a policy that holds the
// change to its contract and nothing else. The cheat is named and refused, gets
// nothing, and the run goes on to take the honest change.
func TestFlowCheats(t *testing.T) {
	t.Parallel()
	base := cheatBase(t)
	for _, c := range cheats {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := base.copy(t)
			s.run(`cat > ../plan.yaml <<'F'
version: 1
goal: Better tokens
requirements:
  - id: R1
    text: Tokens are better
    acceptance: [{id: A1, test: "token/kind_test.go::TestKnown", before: passes}]
scope:
  - {id: S1, paths: ["token/**", go.mod], ops: [create, modify], for: [R1]}
`+c.plan+`
F
proveto flow init --task 'Better tokens' --policy fast
proveto flow plan submit @latest ../plan.yaml`, 0)
			s.run(c.bad, 0)
			out := s.run(`proveto flow submit @latest --snapshot .`, 3)
			for _, want := range []string{"plan.diff said no"} {
				if !strings.Contains(out, want) {
					t.Errorf("the refusal does not say %q:\n%s", want, out)
				}
			}
			var v struct {
				Data struct {
					Run struct {
						Status string `json:"status"`
						Stage  string `json:"current_stage"`
					} `json:"run"`
					Findings []struct {
						File, Message, Severity string
					} `json:"findings"`
				} `json:"data"`
			}
			if err := json.Unmarshal([]byte(s.run(`proveto flow status @latest --json`, 0)), &v); err != nil {
				t.Fatal(err)
			}
			named := false
			for _, f := range v.Data.Findings {
				named = named || f.Severity == "block" && strings.HasPrefix(f.Message, c.code+":") && f.File == c.names
			}
			if !named || v.Data.Run.Stage != "developer" || v.Data.Run.Status != "open" {
				t.Fatalf("want %s at %s to block, and the run to go on; got %+v", c.code, c.names, v.Data)
			}
			if out := s.run(`proveto flow submit @latest --snapshot .`, 1); !strings.Contains(out, "returned or rejected") {
				t.Errorf("the same tree again:\n%s", out)
			}
			// The honest twin, in the same run.
			s.run(`git update-index --no-assume-unchanged go.mod; git reset -q --hard; git clean -qfdx; rm -f .git/info/attributes
proveto flow feedback @latest
for f in $(proveto flow feedback @latest --json | sed -n 's/^ *"id": "\(F-[0-9]*\)",$/\1/p' | sort -u); do proveto flow answer @latest "$f" --addressed || exit 9; done`, 0)
			s.run(c.twin, 0)
			if out := s.run(`proveto flow submit @latest --snapshot .`, 0); !strings.Contains(out, "current stage reviewer") {
				t.Errorf("the twin does not get to the reviewer:\n%s", out)
			}
		})
	}
}

// cheatBase is a repository with the policy of the cheats.
func cheatBase(t *testing.T) *shell {
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	if err := os.MkdirAll(filepath.Join(repo, ".proveto"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newShell(t, repo)
	s.run(`ssh-keygen -q -t ed25519 -N '' -C '' -f ../alice && ssh-keygen -q -t ed25519 -N '' -C '' -f ../bob
cat > .proveto/flow.yaml <<'F'
version: 1
policies:
  fast:
    on_reject: reopen
    stages:
      - {id: planner, role: planner, gates: [plan.lint], decide: {approvals: 0}}
      - {id: developer, role: developer, needs: [planner], gates: [plan.diff], decide: engine}
      - {id: reviewer, role: reviewer, needs: [developer], gates: [findings.closed], decide: {approvals: 1, humans: 1}}
    limits: {max_scope: 1.0}
F
`, 0)
	s.run(tokenModule+`sed -i 's/, principals\]/]/' .proveto/principals.yaml
git commit -qam 'who may what'
`, 0)
	s.env = append(s.env, "PROVETO_KEY="+filepath.Join(dir, "alice"))
	return s
}

// copy is the same repository with a state of its own.
func (s *shell) copy(t *testing.T) *shell {
	t.Helper()
	dir := t.TempDir()
	out := newShell(t, filepath.Join(dir, "repo"), s.env[len(s.env)-1])
	from := s.dir
	s2 := *out
	s2.dir = dir
	s2.run(`cp -r `+from+` repo`, 0)
	return out
}
