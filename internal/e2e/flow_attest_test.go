package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlowAttested carries a measured run to its delivery, and checks on another
// machine what is said of it.
func TestFlowAttested(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	if err := os.MkdirAll(filepath.Join(repo, ".proveto"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newShell(t, repo)
	s.run(`ssh-keygen -q -t ed25519 -N '' -C '' -f ../alice && ssh-keygen -q -t ed25519 -N '' -C '' -f ../bob`, 0)
	s.run(tokenModule, 0)
	s.run(tokenPlan, 0)
	s.env = append(s.env, "PROVETO_KEY="+filepath.Join(dir, "alice"))
	s.run(`proveto flow init --task 'Expired tokens are refused'`, 0)
	s.run(`proveto flow plan submit @latest ../plan.yaml`, 0)
	s.run(tokenWork, 0)
	s.run(`proveto flow submit @latest`, 0)
	s.run(`proveto flow attest @latest`, 1)
	s.run(`PROVETO_KEY=../bob proveto flow advance @latest --stage reviewer --actor bob --decision approve`, 0)
	s.run(`proveto flow attest @latest -o ../before.jsonl`, 0)
	s.run(`proveto flow deliver @latest`, 0)
	s.run(`proveto flow attest @latest -o ../after.jsonl`, 0)
	delivered := strings.Fields(s.run(`b=$(git for-each-ref --format='%(refname)' refs/heads/proveto/); git rev-parse "$b" "$b^{tree}"`, 0))

	// Elsewhere there is neither the ledger nor the repository.
	key := strings.TrimSpace(s.run(`proveto ledger head --json=verifier_key | sed -n 's/.*"verifier_key": "\(.*\)".*/\1/p'`, 0))
	there := newShell(t, dir)
	for file, subjects := range map[string][]string{"before.jsonl": {delivered[1]}, "after.jsonl": delivered} {
		out := there.run(`proveto verify `+file+` --signer '`+key+`'`, 0)
		for _, want := range append(subjects,
			"PROVETO_PLAN_HELD", "PROVETO_REQUIREMENTS_PROVEN", "PROVETO_CHANGE_PROVEN", "PROVETO_BUILD_PASSED", "PROVETO_BASE_TESTS_KEPT", "PROVETO_SUITE_PASSED",
			"PROVETO_NO_SECRETS_FOUND", "PROVETO_NO_WAIVERS", "PROVETO_SEPARATION_HELD", "PROVETO_HUMAN_APPROVALS_1", "PROVETO_INDEPENDENT_APPROVALS_1",
			"approve by bob (human)", "refused     attest by alice: stage_out_of_order", "the key that you named",
		) {
			if !strings.Contains(out, want) {
				t.Errorf("%s does not say %q:\n%s", file, want, out)
			}
		}
	}
	lines := strings.SplitAfter(there.run(`cat after.jsonl`, 0), "\n")
	for name, text := range map[string]string{"cut.jsonl": lines[0], "mixed.jsonl": lines[0] + strings.SplitAfter(there.run(`cat before.jsonl`, 0), "\n")[1]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		there.run(`proveto verify `+name, 5)
	}
	decisionsHoldForOpenSSH(t, there, dir)

	// The evidence is there with its probes, and measures the same again.
	if out := s.run(`proveto flow evidence @latest --gate build`, 0); !strings.Contains(out, "probe refused [verify ") {
		t.Errorf("the build gate shows no probe:\n%s", out)
	}
	one := s.run(`proveto flow evidence @latest "$(proveto flow evidence @latest --gate prove.requirements --json | sed -n 's/.*"id": "\(ev_[0-9a-f]*\)".*/\1/p')"`, 0)
	if !strings.Contains(one, "proveto why ") {
		t.Errorf("the requirements' evidence shows no certificate:\n%s", one)
	}
	was := s.run(`proveto flow watch @latest`, 0)
	if out := s.run(`proveto flow replay @latest 2>/dev/null`, 0); !strings.Contains(out, "11 same, 0 differ, 0 cannot be measured again") {
		t.Errorf("replay:\n%s", out)
	}
	if is := s.run(`proveto flow watch @latest`, 0); is != was {
		t.Errorf("replay changed the run:\n%s\nwas\n%s", is, was)
	}
	for line := range strings.Lines(was) {
		if !json.Valid([]byte(line)) {
			t.Errorf("watch wrote a line that is no JSON: %s", line)
		}
	}
	out := s.run(`proveto flow report @latest`, 0)
	for _, want := range []string{"# Delivered: the approved tree is commit " + delivered[0][:12], "| R1 | proven |", "token/token.go", "approve by bob"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report does not say %q:\n%s", want, out)
		}
	}

	// Another state of the objects: what was measured cannot be measured any more.
	s.run(`mv ../repo/.git ../gone && git init -q`, 0)
	s.run(`proveto flow replay @latest --gate suite.full 2>/dev/null`, 4)
	s.run(`proveto ledger verify`, 0)
}

// decisionsHoldForOpenSSH checks the signature of each decision of an attestation
// with ssh-keygen.
func decisionsHoldForOpenSSH(t *testing.T, s *shell, dir string) {
	t.Helper()
	out := s.run(`sed -n 1p after.jsonl`, 0)
	var env struct{ Payload []byte }
	var st struct {
		Predicate struct {
			Summary struct {
				Stages []struct {
					Attempts []struct {
						Decisions []struct {
							Principal string
							Signed    struct {
								Statement json.RawMessage
								Armored   string
							}
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &env); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(env.Payload, &st); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, stage := range st.Predicate.Summary.Stages {
		for _, a := range stage.Attempts {
			for _, d := range a.Decisions {
				n++
				if err := os.WriteFile(filepath.Join(dir, "sig"), []byte(d.Signed.Armored), 0o600); err != nil {
					t.Fatal(err)
				}
				for _, statement := range []string{string(d.Signed.Statement), string(d.Signed.Statement) + " "} {
					cmd := exec.Command("ssh-keygen", "-Y", "verify", "-f", "repo/.proveto/allowed_signers", "-I", d.Principal, "-n", "proveto-flow-v1", "-s", "sig")
					cmd.Dir, cmd.Stdin = dir, strings.NewReader(statement)
					if out, err := cmd.CombinedOutput(); (err == nil) != (statement == string(d.Signed.Statement)) {
						t.Errorf("ssh-keygen -Y verify: %v %s", err, out)
					}
				}
			}
		}
	}
	if n != 1 {
		t.Errorf("%d decisions, want 1", n)
	}
}
