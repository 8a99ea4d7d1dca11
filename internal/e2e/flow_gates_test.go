package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlowCommandGates tries gates of the repository's own: one that cannot fail
// is blind, one that rejects its planted bad tree counts, one without a probe is
// refused before a run begins.
func TestFlowCommandGates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	if err := os.MkdirAll(filepath.Join(repo, ".proveto"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newShell(t, repo)
	s.run(`mkdir -p probes
printf 'fine\n' > state.txt
cat > probes/bad.patch <<'F'
--- a/state.txt
+++ b/state.txt
@@ -1 +1 @@
-fine
+broken
F
cat > .proveto/flow.yaml <<'F'
version: 1
policies:
  blind:
    stages:
      - {id: planner, role: planner, gates: [], decide: {approvals: 1}}
      - {id: developer, role: developer, needs: [planner], gates: [command.always], decide: engine}
    commands:
      always: {run: ["true"], probe: {patch: probes/bad.patch}, time: 1m}
  honest:
    stages:
      - {id: planner, role: planner, gates: [], decide: {approvals: 1}}
      - {id: developer, role: developer, needs: [planner], gates: [command.state], decide: engine}
    commands:
      state: {run: [grep, -qx, fine, state.txt], probe: {patch: probes/bad.patch}, time: 1m}
  naked:
    stages:
      - {id: planner, role: planner, gates: [], decide: {approvals: 1}}
      - {id: developer, role: developer, needs: [planner], gates: [command.state], decide: engine}
    commands:
      state: {run: [grep, -qx, fine, state.txt], time: 1m}
F
git init -q && git add -A && git commit -qm base`, 0)
	if out := s.run(`proveto flow policy check blind`, 4); !strings.Contains(out, "accepted a bad tree") {
		t.Errorf("a gate that cannot fail:\n%s", out)
	}
	if out := s.run(`proveto flow policy check honest`, 0); !strings.Contains(out, "counts") {
		t.Errorf("a gate that rejects its bad tree:\n%s", out)
	}
	if out := s.run(`proveto flow init --task x --policy naked`, 1); !strings.Contains(out, "probe") {
		t.Errorf("a gate without a probe:\n%s", out)
	}
	for name, exit := range map[string]int{"blind": 4, "honest": 0} {
		s.run(`git checkout -q . ; git clean -qfd; proveto flow init --task x --policy `+name+`
proveto flow advance @latest --stage planner --actor planner --decision approve --note plan
printf 'new\n' > new.txt`, 0)
		out := s.run(`proveto flow submit @latest --snapshot .`, exit)
		if exit == 4 && !strings.Contains(out, "accepted a bad tree") {
			t.Errorf("policy %s: %s", name, out)
		}
		status := s.run(`proveto flow status @latest --format kv`, 0)
		if passed := strings.Contains(status, "current_stage=done"); passed != (exit == 0) {
			t.Errorf("policy %s:\n%s", name, status)
		}
	}
}
