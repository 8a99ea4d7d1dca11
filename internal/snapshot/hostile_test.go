package snapshot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// hostile gives a repository every setting known to start a program; each would
// write a line to proof.
func (b *bundle) hostile(dir, proof string) {
	b.t.Helper()
	gitDir := b.run(dir, "rev-parse", "--absolute-git-dir")
	evil := script(b.t, `echo "$0 $*" >> '`+proof+`'; exit 1`)
	include := filepath.Join(gitDir, "included")
	must(b.t, os.WriteFile(include, []byte("[core]\n\tfsmonitor = "+evil+"\n\thooksPath = "+filepath.Join(gitDir, "evilhooks")+"\n"), 0o644))
	for _, hooks := range []string{"hooks", "evilhooks"} {
		must(b.t, os.MkdirAll(filepath.Join(gitDir, hooks), 0o755))
		for _, h := range []string{"post-index-change", "reference-transaction", "post-checkout", "pre-commit", "post-commit", "fsmonitor-watchman", "pre-auto-gc", "post-rewrite", "update", "commit-msg"} {
			must(b.t, os.Symlink(evil, filepath.Join(gitDir, hooks, h)))
		}
	}
	for _, kv := range [][2]string{
		{"filter.evil.clean", evil},
		{"filter.evil.smudge", evil},
		{"filter.evil.process", evil},
		{"filter.evil.required", "true"},
		{"diff.external", evil},
		{"diff.evil.textconv", evil},
		{"diff.evil.command", evil},
		{"merge.evil.driver", evil},
		{"core.sshCommand", evil},
		{"core.askPass", evil},
		{"core.editor", evil},
		{"core.pager", evil},
		{"core.gitProxy", evil},
		{"core.alternateRefsCommand", evil},
		{"credential.helper", "!" + evil},
		{"gpg.program", evil},
		{"commit.gpgSign", "true"},
		{"pager.ls-files", evil},
		{"pager.diff-tree", evil},
		{"sequence.editor", evil},
		{"alias.ls-files", "!" + evil},
		{"alias.update-index", "!" + evil},
		{"alias.read-tree", "!" + evil},
		{"uploadpack.packObjectsHook", evil},
		{"log.showSignature", "true"},
		{"protocol.ext.allow", "always"},
		{"remote.origin.url", "ext::" + evil + " %S"},
		{"remote.origin.promisor", "true"},
		{"remote.origin.partialCloneFilter", "blob:none"},
		{"extensions.partialClone", "origin"},
		{"core.repositoryFormatVersion", "1"},
		{"submodule.recurse", "true"},
		{"fetch.recurseSubmodules", "true"},
		{"gc.auto", "1"},
		{"core.splitIndex", "true"},
		{"core.autocrlf", "true"},
		{"core.ignoreCase", "true"},
		{"core.quotePath", "true"},
		{"diff.renames", "copies"},
		{"core.fileMode", "false"},
		{"include.path", include},
	} {
		b.run(dir, "config", kv[0], kv[1])
	}
}

const missingCommit = "0123456789012345678901234567890123456789"

func TestNothingOfTheRepositoryIsExecuted(t *testing.T) {
	proof := filepath.Join(t.TempDir(), "proof")
	b := setup(t)
	sub := b.repo("sub", map[string]string{"s": "1"})
	attributes := "* filter=evil diff=evil merge=evil\n"
	dir := b.repo("r", map[string]string{"a": "1\r\n", "d/e": "2"})
	b.run(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "sub")
	b.run(dir, "commit", "-qm", "sub")
	write(t, dir, map[string]string{".gitattributes": attributes, "a": "2\r\n", "sub/.gitattributes": attributes, "sub/s": "2", "sub/n": "n"})
	want := map[string]string{
		".gitattributes": attributes, ".gitmodules": "", "a": "2\r\n", "d/e": "2", "sub/.gitattributes": attributes, "sub/s": "2", "sub/n": "n",
	}
	b.hostile(dir, proof)
	b.hostile(filepath.Join(dir, "sub"), proof)
	b.run(b.home, "config", "--file", filepath.Join(b.home, ".gitconfig"), "core.fsmonitor", filepath.Join(b.home, "evil"))

	// The caller's environment aims at the repository, too.
	evil := script(t, `echo "env $*" >> '`+proof+`'`)
	for k, v := range map[string]string{
		"GIT_DIR": filepath.Join(sub, ".git"), "GIT_WORK_TREE": sub, "GIT_INDEX_FILE": filepath.Join(sub, ".git/index"), "GIT_OBJECT_DIRECTORY": filepath.Join(sub, ".git/objects"),
		"GIT_EXTERNAL_DIFF": evil, "GIT_SSH_COMMAND": evil, "GIT_PAGER": evil, "GIT_EDITOR": evil, "GIT_ASKPASS": evil, "GIT_EXEC_PATH": filepath.Dir(evil),
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": evil, "GIT_CONFIG_PARAMETERS": "'core.fsmonitor=" + evil + "'",
		"GIT_TRACE2_EVENT": proof, "GIT_TRACE": proof, "HOME": b.home, "GIT_CONFIG_GLOBAL": filepath.Join(b.home, ".gitconfig"), "GIT_TEMPLATE_DIR": filepath.Dir(evil),
	} {
		t.Setenv(k, v)
	}
	before := fingerprint(t, b.home)
	snap := b.seal(dir)
	got := b.content(snap.Repo, snap.Tree)
	got[".gitmodules"] = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sealed tree (-want +got):\n%s", diff)
	}
	c := b.checkout(snap.Repo, snap.Tree)
	onDisk := onDisk(t, c.Dir())
	onDisk[".gitmodules"] = ""
	if diff := cmp.Diff(want, onDisk); diff != "" {
		t.Errorf("checkout (-want +got):\n%s", diff)
	}
	b.release(c)
	b.sealRev(dir, "HEAD")
	if _, err := b.store.Churn(t.Context(), snap.Repo, 10); err != nil {
		t.Error(err)
	}
	if _, err := b.store.MergeBase(t.Context(), snap.Repo, "HEAD", "HEAD~1"); err != nil {
		t.Error(err)
	}
	// A missing object of a partial clone is not fetched.
	if _, err := b.store.ResolveCommit(t.Context(), snap.Repo, missingCommit); !fault.Has(err, CodeBaseUnresolved) {
		t.Errorf("ResolveCommit of a missing commit = %v, want %s", err, CodeBaseUnresolved)
	}
	if diff := cmp.Diff(before, fingerprint(t, b.home)); diff != "" {
		t.Errorf("the user's files were touched:\n%s", diff)
	}
	if _, err := b.store.Anchor(t.Context(), snap.Repo, "L", "", []byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := b.store.GC(t.Context(), func(Repo, evidence.Tree) bool { return false }, 0); err != nil {
		t.Error(err)
	}
	if ran, err := os.ReadFile(proof); !os.IsNotExist(err) {
		t.Fatalf("something of the repository was executed (%v):\n%s", err, ran)
	}

	// The twin: git as the user runs it does execute it, so the trap works.
	for _, args := range [][]string{{"status"}, {"add", "a"}, {"cat-file", "-t", missingCommit}, {"update-ref", "refs/x", "HEAD"}} {
		must(t, os.RemoveAll(proof))
		cmd := exec.Command(realGit(t), args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home}
		out, err := cmd.CombinedOutput() // a trap may well make git fail
		if ran, rerr := os.ReadFile(proof); rerr != nil || len(ran) == 0 {
			t.Errorf("git %s executed nothing (%v, %v): %s", strings.Join(args, " "), err, rerr, out)
		}
	}
}

func TestTreesAreReadThroughNoReplacement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "real"})
	real := b.run(dir, "rev-parse", "HEAD^{tree}")
	write(t, dir, map[string]string{"a": "fake"})
	b.run(dir, "commit", "-qam", "fake")
	fake := b.run(dir, "rev-parse", "HEAD")
	b.run(dir, "reset", "-q", "--hard", "HEAD~1")
	b.run(dir, "replace", "HEAD", fake)
	if snap := b.sealRev(dir, "HEAD"); string(snap.Tree) != real {
		t.Errorf("sealed %s, want %s: a replace ref was followed", snap.Tree, real)
	}
	// The real HEAD has no parent, the replacement has.
	if got, err := b.store.ResolveCommit(t.Context(), b.locate(dir), "HEAD~1"); !fault.Has(err, CodeBaseUnresolved) {
		t.Errorf("ResolveCommit(HEAD~1) = %s, %v, want %s", got, err, CodeBaseUnresolved)
	}
	// Nor through the older file of that kind.
	must(t, os.WriteFile(filepath.Join(dir, ".git", "info", "grafts"), []byte(b.run(dir, "rev-parse", "HEAD")+" "+fake+"\n"), 0o600))
	b.run(dir, "replace", "-d", b.run(dir, "rev-parse", "HEAD"))
	if got, err := b.store.ResolveCommit(t.Context(), b.locate(dir), "HEAD~1"); !fault.Has(err, CodeBaseUnresolved) {
		t.Errorf("ResolveCommit(HEAD~1) with a graft = %s, %v, want %s", got, err, CodeBaseUnresolved)
	}
}

func TestSealSeesChangesWithinOneSecond(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.repo("r", map[string]string{"a": "0000"})
	p := filepath.Join(dir, "a")
	st, err := os.Stat(p)
	must(t, err)
	seen := map[evidence.Tree]bool{}
	for _, body := range []string{"0001", "0002", "0003", "0004", "0005"} {
		// Same size, same modification time, same inode.
		f, err := os.OpenFile(p, os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteString(body)
		must(t, err)
		must(t, f.Close())
		must(t, os.Chtimes(p, st.ModTime(), st.ModTime()))
		snap := b.seal(dir)
		if got := b.content(snap.Repo, snap.Tree)["a"]; got != body {
			t.Errorf("sealed %q, want %q", got, body)
		}
		seen[snap.Tree] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d trees, want 5", len(seen))
	}
}
