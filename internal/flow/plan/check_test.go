package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proveto/proveto/internal/evidence"
)

// world is a base with a change of it, from which an input is made.
type world struct {
	contract string
	base     map[string]string // content by path
	now      map[string]string
	modes    map[string]string // of the new side; regular files otherwise
	twins    map[string]string // old path: new path
	with     func(*Input)
}

// honest is a base and a change that the sample contract allows in full.
func honest(t tester) world {
	t.Helper()
	base := map[string]string{
		"README.md": "hi\n", "proveto.yaml": "version: 1\n", "auth/auth.go": "package auth\n\nfunc Check() int { return 1 }\n",
		"auth/auth_test.go": "package auth\n\nimport \"testing\"\n\nfunc TestCheck(t *testing.T) {\n\tif Check() != 1 {\n\t\tt.Fatal()\n\t}\n}\n",
		"go.mod":            "module m\n\ngo 1.26\n", "go.sum": "", "web/page.js": "1\n", "graders/oauth/grade.sh": "x\n",
	}
	now := copied(base)
	now["auth/oauth.go"] = "package auth\n\nfunc Login() {}\n"
	now["auth/oauth_test.go"] = "package auth\n\nimport \"testing\"\n\nfunc TestExpiredToken(t *testing.T) {\n\tif Login() != nil {\n\t\tt.Fatal()\n\t}\n}\n"
	now["auth/auth.go"] = "package auth\n\nfunc Check() int { return 0 + 1 }\n"
	now["go.mod"] += "\nrequire golang.org/x/oauth2 v0.30.0\n"
	now["go.sum"] = "golang.org/x/oauth2 v0.30.0 h1:A=\n"
	return world{contract: sample(t), base: base, now: now, modes: map[string]string{}, twins: map[string]string{}}
}

func copied(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// input is the world as a caller would hand it in.
func (w world) input(t tester) Input {
	t.Helper()
	in := Input{Contract: parse(t, w.contract), Policy: rules(t)}
	blobs := map[string][]byte{}
	blob := func(s string) string {
		id := string(evidence.DigestOf([]byte(s)))
		blobs[id] = []byte(s)
		return id
	}
	names := map[string]bool{}
	for p := range w.base {
		names[p] = true
		in.Base = append(in.Base, p)
	}
	for p := range w.now {
		names[p] = true
		in.Tree = append(in.Tree, p)
	}
	slices.Sort(in.Base)
	slices.Sort(in.Tree)
	back := map[string]string{}
	for a, b := range w.twins {
		back[b] = a
	}
	for p := range names {
		old, was := w.base[p]
		now, is := w.now[p]
		c := Change{Path: p, Size: int64(len(now)), Binary: strings.Contains(now, "\x00")}
		if was {
			c.OldMode, c.OldBlob, c.Deleted = modeFile, blob(old), strings.Count(old, "\n")
		}
		if is {
			c.NewMode, c.NewBlob, c.Added = modeFile, blob(now), strings.Count(now, "\n")
			if m := w.modes[p]; m != "" {
				c.NewMode = m
			}
		}
		if c.Twin = w.twins[p]; c.Twin == "" {
			c.Twin = back[p]
		}
		if c.OldMode != c.NewMode || c.OldBlob != c.NewBlob {
			in.Changes = append(in.Changes, c)
		}
	}
	slices.SortFunc(in.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	var err error
	if in.Facts, err = Read(in.Changes, blobs); err != nil {
		t.Fatal(err)
	}
	if w.with != nil {
		w.with(&in)
	}
	return in
}

func check(t tester, in Input) Result {
	t.Helper()
	r, err := Check(in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckPassesWhatTheContractAllows(t *testing.T) {
	t.Parallel()
	r := check(t, honest(t).input(t))
	want := Result{
		Outcome: Pass, Violations: []Violation{}, Unmet: []string{}, Requirements: map[string]State{},
		Matched: []Match{
			{"auth/auth.go", Modify, "S1"},
			{"auth/oauth.go", Create, "S1"},
			{"auth/oauth_test.go", Create, "S3"},
			{"go.mod", Modify, "S2"},
			{"go.sum", Modify, "S2"},
		},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

// TestCheckNamesEachViolation has, for each code, changes that break it and honest
// twins that look like them and do not.
func TestCheckNamesEachViolation(t *testing.T) {
	t.Parallel()
	type edit func(*world)
	put := func(path, text string) edit { return func(w *world) { w.now[path] = text } }
	drop := func(path string) edit { return func(w *world) { delete(w.now, path) } }
	had := func(path, text string) edit { return func(w *world) { w.base[path], w.now[path] = text, text } }
	mode := func(path, m string) edit { return func(w *world) { w.modes[path] = m } }
	move := func(from, to string) edit {
		return func(w *world) {
			if _, ok := w.now[to]; !ok {
				w.now[to] = w.now[from]
			}
			delete(w.now, from)
			w.twins[from] = to
		}
	}
	plan := func(old, now string) edit {
		return func(w *world) {
			if !strings.Contains(w.contract, old) {
				t.Fatalf("the contract has no %q", old)
			}
			w.contract = strings.Replace(w.contract, old, now, 1)
		}
	}
	with := func(f func(*Input)) edit {
		return func(w *world) {
			if was := w.with; was != nil {
				w.with = func(in *Input) { was(in); f(in) }
				return
			}
			w.with = f
		}
	}
	kindIs := func(k Kind) edit {
		return with(func(in *Input) { in.Contract.Kind = k; in.Contract.Interfaces = nil })
	}
	rule := func(r string) edit { return plan("dependencies:", "  - "+r+"\ndependencies:") }
	allowWeb := rule(`{id: W, paths: ["web/**"], ops: [create, modify, delete], for: [R1]}`)
	test := "package auth\n\nimport \"testing\"\n\nfunc TestCheck(t *testing.T) {\n"
	lock := `{"lockfileVersion": 3, "packages": {"": {"dependencies": {"top": "1"}}, "node_modules/top": {"version": "1", "dependencies": {"low": "1"}}`
	npm := []edit{
		had("package.json", `{"dependencies": {}}`), had("package-lock.json", `{"lockfileVersion": 3, "packages": {"": {}}}`),
		rule(`{id: N, paths: [package.json, package-lock.json, web/x], ops: [modify], for: [R1]}`),
		put("package.json", `{"dependencies": {"top": "1"}}`), plan("add: [", "add: [top, "),
	}

	for name, c := range map[string]struct {
		edits []edit
		want  string // CODE path: part of the message; several by |; empty: an honest twin
	}{
		"P001 outside":             {[]edit{put("ci.yml", "x")}, "P001 ci.yml: no scope rule names it"},
		"P001 beside the scope":    {[]edit{put("authx/a.md", "x")}, "P001 authx/a.md"},
		"P001 deleted outside":     {[]edit{drop("README.md")}, "P001 README.md"},
		"P001 moved out of scope":  {[]edit{move("auth/auth.go", "x.md"), with(func(in *Input) { in.Facts.Base, in.Facts.Head = nil, nil })}, "P001 x.md|P002 auth/auth.go: rule S1 does not allow to rename it"},
		"P001 within":              {[]edit{put("auth/deep/er/notes.md", "x")}, ""},
		"P001 docs":                {[]edit{kindIs(Docs), put("auth/x.txt", "x")}, "P001 auth/auth.go: docs_paths|P001 auth/oauth.go|P001 auth/oauth_test.go|P001 auth/x.txt|P001 go.mod|P001 go.sum|P007 auth/oauth.go"},
		"P002 deleted":             {[]edit{had("auth/old.md", "x"), drop("auth/old.md")}, "P002 auth/old.md: rule S1 does not allow to delete it"},
		"P002 modified, may come":  {[]edit{had("cmd/x.md", "x"), put("cmd/x.md", "y"), rule(`{id: C, paths: [cmd/x.md], ops: [create], for: [R1]}`)}, "P002 cmd/x.md: rule C does not allow to modify it"},
		"P002 deleted, allowed":    {[]edit{had("auth/old.md", "x"), drop("auth/old.md"), rule(`{id: D, paths: [auth/old.md], ops: [delete], for: [R1]}`)}, ""},
		"P002 renamed":             {[]edit{had("auth/old.md", "x"), move("auth/old.md", "auth/new.md")}, "P002 auth/old.md: rule S1 does not allow to rename it"},
		"P002 renamed, allowed":    {[]edit{had("auth/old.md", "x"), move("auth/old.md", "auth/new.md"), rule(`{id: D, paths: ["auth/*.md"], ops: [rename], for: [R1]}`)}, ""},
		"P002 renamed and edited":  {[]edit{had("lib/old.md", "x"), move("lib/old.md", "lib/new.md"), put("lib/new.md", "y"), rule(`{id: D, paths: ["lib/*.md"], ops: [rename], for: [R1]}`)}, "P002 lib/new.md: rule D does not allow to rename it"},
		"P002 renamed, may edit":   {[]edit{had("lib/old.md", "x"), move("lib/old.md", "lib/new.md"), put("lib/new.md", "y"), rule(`{id: D, paths: ["lib/*.md"], ops: [rename, modify], for: [R1]}`)}, ""},
		"P002 rename is half":      {[]edit{had("lib/old.md", "x"), move("lib/old.md", "lib/new.md"), rule(`{id: D, paths: [lib/old.md], ops: [rename], for: [R1]}`)}, "P001 lib/new.md"},
		"P002 rename is claimed":   {[]edit{had("lib/old.md", "x"), drop("lib/old.md"), with(func(in *Input) { twin(in, "lib/old.md", "auth/oauth.go") }), rule(`{id: D, paths: ["lib/*.md"], ops: [rename], for: [R1]}`)}, "P002 lib/old.md: rule D does not allow to delete it"},
		"P003 policy":              {[]edit{put(".proveto/flow.yaml", "x"), rule(`{id: P, paths: ["**"], ops: [create], for: [R1]}`)}, "P003 .proveto/flow.yaml: it is protected by .proveto"},
		"P003 settings":            {[]edit{put("proveto.yaml", "version: 1 \n"), rule(`{id: P, paths: ["**"], ops: [modify], for: [R1]}`)}, "P003 proveto.yaml"},
		"P003 other case":          {[]edit{put(".Proveto/flow.yaml", "x"), rule(`{id: P, paths: ["**"], ops: [create], for: [R1]}`)}, "P003 .Proveto/flow.yaml"},
		"P003 of the policy":       {[]edit{put("ci/run", "x"), rule(`{id: P, paths: ["**"], ops: [create], for: [R1]}`)}, "P003 ci/run: it is protected by ci/**"},
		"P003 of it, other case":   {[]edit{put("CI/run", "x"), rule(`{id: P, paths: ["**"], ops: [create], for: [R1]}`)}, "P003 CI/run"},
		"P003 grader of the plan":  {[]edit{put("graders/oauth/grade.sh", "exit 0\n"), rule(`{id: P, paths: ["**"], ops: [modify], for: [R1]}`)}, "P003 graders/oauth/grade.sh: it is protected by graders/oauth"},
		"P003 grader of a policy":  {[]edit{put("bench/g/x", "x"), rule(`{id: P, paths: ["**"], ops: [create], for: [R1]}`), with(func(in *Input) { in.Policy.Graders = []string{"bench/g"} })}, "P003 bench/g/x"},
		"P003 moved away":          {[]edit{move("proveto.yaml", "auth/proveto.yaml"), rule(`{id: P, paths: ["**"], ops: [rename], for: [R1]}`)}, "P003 proveto.yaml"},
		"P003 guarded, with more":  {[]edit{put("proveto.yaml", "x"), rule(`{id: P, paths: [proveto.yaml], ops: [modify], for: [R1]}`), with(func(in *Input) { in.Policy.Guarded = true })}, "P003 proveto.yaml: it needs a run of its own"},
		"P003 guarded, alone":      {[]edit{onlyPolicy, with(func(in *Input) { in.Policy.Guarded = true })}, ""},
		"P003 not guarded, alone":  {[]edit{onlyPolicy}, "P003 proveto.yaml"},
		"P003 looks like it":       {[]edit{put("auth/proveto.yaml", "x"), put("auth/.proveto/x", "y")}, ""},
		"P004 lines of a rule":     {[]edit{put("auth/big.md", strings.Repeat("x\n", 601))}, "P004 : 607 added lines, rule S1 allows 600"},
		"P004 lines over two":      {[]edit{put("auth/a.md", strings.Repeat("x\n", 300)), put("auth/b.md", strings.Repeat("x\n", 301))}, "P004 : rule S1 allows 600"},
		"P004 lines of a rule, at": {[]edit{put("auth/big.md", strings.Repeat("x\n", 594))}, ""},
		"P004 lines of the plan":   {[]edit{plan("added: 900", "added: 20")}, "P004 : the budget allows 20"},
		"P004 deleted":             {[]edit{plan("deleted: 200", "deleted: 5")}, "P004 : deleted lines, the budget allows 5"},
		"P004 files":               {[]edit{plan("files: 12", "files: 4")}, "P004 : 5 files, the budget allows 4"},
		"P004 files, at":           {[]edit{plan("files: 12", "files: 5")}, ""},
		"P004 files, a rename":     {[]edit{plan("files: 12", "files: 6"), had("auth/o.md", "x"), move("auth/o.md", "auth/n.md"), rule(`{id: D, paths: ["auth/*.md"], ops: [rename], for: [R1]}`)}, ""},
		"P005 missing":             {[]edit{drop("auth/oauth_test.go")}, "P005 : rule S3 requires a change of auth/oauth_test.go"},
		"P005 by another op":       {[]edit{had("auth/oauth_test.go", "package auth\n"), put("auth/oauth_test.go", "package auth\n\n//\n")}, "P005 : rule S3"},
		"P005 by a mode":           {[]edit{had("auth/oauth_test.go", "package auth\n"), mode("auth/oauth_test.go", modeExecutable), plan("ops: [create, modify]", "ops: [create, modify, mode]")}, "P005 : rule S3"},
		"P005 one of two":          {[]edit{plan(`paths: ["auth/oauth_test.go"]`, `paths: ["auth/oauth_test.go", "auth/more*.md"]`)}, "P005 : auth/more*.md"},
		"P005 both":                {[]edit{plan(`paths: ["auth/oauth_test.go"]`, `paths: ["auth/oauth_test.go", "auth/more*.md"]`), put("auth/more1.md", "x")}, ""},

		"P006 added":              {[]edit{put("go.mod", "module m\n\ngo 1.26\n\nrequire (\n\tgolang.org/x/oauth2 v0.30.0\n\tevil.example/x v1.0.0 // indirect\n)\n")}, "P006 go.mod: add: evil.example/x is not declared (v1.0.0)"},
		"P006 bumped":             {[]edit{had("go.mod", "module m\n\ngo 1.26\n\nrequire a.example/x v1.0.0\n"), put("go.mod", "module m\n\ngo 1.26\n\nrequire a.example/x v1.1.0\n")}, "P006 go.mod: bump: a.example/x is not declared (v1.0.0 is now v1.1.0)"},
		"P006 bumped, declared":   {[]edit{had("go.mod", "module m\n\ngo 1.26\n\nrequire a.example/x v1.0.0\n"), put("go.mod", "module m\n\ngo 1.26\n\nrequire a.example/x v1.1.0\n"), plan("bump: []", "bump: [a.example/x]")}, ""},
		"P006 declared as added":  {[]edit{had("go.mod", "module m\n\ngo 1.26\n\nrequire a.example/x v1.0.0\n"), put("go.mod", "module m\n\ngo 1.26\n\nrequire a.example/x v1.1.0\n"), plan("add: [", "add: [a.example/x, ")}, "P006 go.mod: bump"},
		"P006 other version":      {[]edit{plan(`"golang.org/x/oauth2"`, `"golang.org/x/oauth2@v0.29.0"`)}, "P006 go.mod: add: golang.org/x/oauth2"},
		"P006 that version":       {[]edit{plan(`"golang.org/x/oauth2"`, `"golang.org/x/oauth2@v0.30.0"`)}, ""},
		"P006 removed":            {[]edit{had("go.mod", "module m\n\ngo 1.26\n\nrequire a.example/x v1.0.0\n"), put("go.mod", "module m\n\ngo 1.26\n")}, "P006 go.mod: remove: a.example/x is not declared"},
		"P006 replaced":           {[]edit{put("go.mod", "module m\n\ngo 1.26\n\nrequire golang.org/x/oauth2 v0.30.0\n\nreplace golang.org/x/oauth2 => ./auth/stub\n"), had("go.mod", "module m\n\ngo 1.26\n\nrequire golang.org/x/oauth2 v0.30.0\n"), put("go.mod", "module m\n\ngo 1.26\n\nrequire golang.org/x/oauth2 v0.30.0\n\nreplace golang.org/x/oauth2 => ./auth/stub\n")}, "P006 go.mod: bump: golang.org/x/oauth2"},
		"P006 other checksum":     {[]edit{had("go.sum", "a.example/x v1.0.0 h1:A=\n"), put("go.sum", "a.example/x v1.0.0 h1:B=\n"), plan("bump: []", "bump: [a.example/x]")}, "P006 go.sum: it is other code"},
		"P006 broken":             {[]edit{put("go.mod", "module m\n\nrequire (")}, "P006 go.mod: what it depends on cannot be read"},
		"P006 comment only":       {[]edit{put("go.mod", "module m // ours\n\ngo 1.26\n\nrequire golang.org/x/oauth2 v0.30.0 // for logins\n")}, ""},
		"P006 opaque":             {[]edit{had("Cargo.toml", "a"), put("Cargo.toml", "b"), rule(`{id: O, paths: ["*.toml"], ops: [modify], for: [R1]}`)}, "P006 Cargo.toml: a manifest that is not parsed changed"},
		"P006 opaque, named":      {[]edit{had("Cargo.toml", "a"), put("Cargo.toml", "b"), rule(`{id: O, paths: [Cargo.toml], ops: [modify], for: [R1]}`)}, ""},
		"P006 opaque, none":       {[]edit{had("Cargo.toml", "a"), put("Cargo.toml", "b"), rule(`{id: O, paths: [Cargo.toml], ops: [modify], for: [R1]}`), with(func(in *Input) { in.Contract.Dependencies = Dependencies{Bump: nil} })}, "P006 Cargo.toml|P006 go.mod"},
		"P006 npm, brought along": {append(slices.Clone(npm), put("package-lock.json", lock+`, "node_modules/low": {"version": "1"}}}`)), "warn P006 package-lock.json: it comes with top"},
		"P006 npm, smuggled":      {append(slices.Clone(npm), put("package-lock.json", lock+`, "node_modules/evil": {"version": "1"}}}`)), "P006 package-lock.json: add: evil"},
		"P006 npm":                {append(slices.Clone(npm), put("package-lock.json", lock+`}}`)), ""},
		"P006 vendored":           {[]edit{had("vendor/modules.txt", "# a.example/x v1.0.0\n"), had("vendor/a.example/x/x.go", "package x\n"), put("vendor/a.example/x/x.go", "package x // edited\n"), rule(`{id: V, paths: ["vendor/**"], ops: [modify], for: [R1]}`)}, "P006 vendor/a.example/x/x.go: the code of a.example/x/x.go is a dependency's"},
		"P006 vendored, declared": {[]edit{had("vendor/modules.txt", "# golang.org/x/oauth2 v0.30.0\n"), put("vendor/golang.org/x/oauth2/x.go", "package x\n"), rule(`{id: V, paths: ["vendor/**"], ops: [create], for: [R1]}`)}, ""},
		"P006 vendor of another":  {[]edit{put("web/vendor/x.css", "x"), allowWeb}, ""},
		"P006 installed":          {[]edit{put("web/node_modules/top/x.css", "x"), allowWeb}, "P006 web/node_modules/top/x.css: the code of top/x.css"},

		"P007 added":              {[]edit{put("auth/oauth.go", "package auth\n\nfunc Login() {}\nfunc Logout() {}\n")}, "P007 auth/oauth.go: add: auth.Logout is not declared"},
		"P007 modified":           {[]edit{put("auth/auth.go", "package auth\n\nfunc Check(force bool) int { return 1 }\n")}, "P007 auth/auth.go: modify: auth.Check"},
		"P007 removed":            {[]edit{put("auth/auth.go", "package auth\n")}, "P007 auth/auth.go: remove: auth.Check"},
		"P007 moved":              {[]edit{put("auth/auth.go", "package auth\n"), put("auth/other.go", "package auth\n\nfunc Check() int { return 2 }\n")}, ""},
		"P007 unexported":         {[]edit{put("auth/oauth.go", "package auth\n\nfunc Login() {}\nfunc help() {}\n")}, ""},
		"P007 in a test":          {[]edit{put("auth/more_test.go", "package auth\n\nfunc Help() {}\n")}, ""},
		"P007 other verb":         {[]edit{plan("change: add", "change: modify")}, "P007 auth/oauth.go: add: auth.Login"},
		"P007 by its directory":   {[]edit{plan(`"auth.Login"`, `"x/auth.Login"`)}, "P007 auth/oauth.go: add: auth.Login"},
		"P007 shared name":        {[]edit{put("auth/auth/a.go", "package auth\n\nfunc Login() {}\n")}, "P007 auth/auth/a.go: add: auth/auth.Login"},
		"P007 shared name, full":  {[]edit{put("auth/auth/a.go", "package auth\n\nfunc Login() {}\n"), with(func(in *Input) { in.Contract.Interfaces[0].Symbol = "auth/auth.Login" })}, "P007 auth/oauth.go: add: auth.Login"},
		"P007 does not parse":     {[]edit{put("auth/oauth.go", "package auth\n\nfunc (\n")}, "P007 auth/oauth.go: what it exports cannot be read"},
		"P007 no driver":          {[]edit{put("web/page.js", "2\n"), allowWeb}, "warn P007 : exported symbols of JavaScript are not compared"},
		"P007 refactor":           {[]edit{with(func(in *Input) { in.Contract.Kind = Refactor })}, "P007 auth/oauth.go: a plan of kind refactor changes no interface"},
		"P007 refactor, the body": {[]edit{kindIs(Refactor), put("auth/oauth.go", "package auth\n\nfunc login() {}\n")}, ""},

		"P009 target":        {[]edit{with(func(in *Input) { in.TargetChanged = []string{"README.md", "auth/auth.go"} })}, "P009 auth/auth.go: it changed on the target since the base, and rule S1 names it"},
		"P009 target beside": {[]edit{with(func(in *Input) { in.TargetChanged = []string{"README.md"} })}, ""},

		"P010 executable":          {[]edit{put("auth/run.sh", "x"), mode("auth/run.sh", modeExecutable)}, "P010 auth/run.sh: it is executable"},
		"P010 made executable":     {[]edit{mode("auth/auth_test.go", modeExecutable)}, "P010 auth/auth_test.go: it is executable"},
		"P010 mode allowed":        {[]edit{mode("auth/auth_test.go", modeExecutable), put("auth/run.sh", "x"), mode("auth/run.sh", modeExecutable), plan("ops: [create, modify]", "ops: [create, modify, mode]")}, ""},
		"P010 mode while renamed":  {[]edit{had("lib/a", "x"), move("lib/a", "lib/b"), mode("lib/b", modeExecutable), rule(`{id: D, paths: ["lib/*"], ops: [rename], for: [R1]}`)}, "P010 lib/b: it is executable"},
		"P010 symlink":             {[]edit{put("auth/link", "/etc/passwd"), mode("auth/link", modeSymlink), plan("ops: [create, modify]", "ops: [create, modify, mode]")}, "P010 auth/link: it is a symlink"},
		"P010 file to symlink":     {[]edit{put("auth/auth.go", "../x"), mode("auth/auth.go", modeSymlink)}, "P010 auth/auth.go: it was a file and is a symlink now|P007 auth/auth.go: remove: auth.Check"},
		"P010 submodule":           {[]edit{put("auth/sub", "x"), mode("auth/sub", modeSubmodule)}, "P010 auth/sub: it is a submodule"},
		"P010 big binary":          {[]edit{put("auth/x.bin", "\x00"), with(func(in *Input) { at(in, "auth/x.bin").Size = maxBinary + 1 })}, "P010 auth/x.bin: it is binary and 1048577 bytes long"},
		"P010 binary":              {[]edit{put("auth/x.bin", "\x00"), with(func(in *Input) { at(in, "auth/x.bin").Size = maxBinary })}, ""},
		"P010 big text":            {[]edit{put("auth/x.txt", "x"), with(func(in *Input) { at(in, "auth/x.txt").Size = maxBinary + 1 })}, ""},
		"P010 pointer":             {[]edit{put("auth/x.psd", "x"), with(func(in *Input) { at(in, "auth/x.psd").LFS = true })}, "P010 auth/x.psd: it is a pointer of Git LFS"},
		"P010 odd mode":            {[]edit{put("auth/x", "x"), mode("auth/x", "100664")}, "P010 auth/x: it has the mode 100664"},
		"P010 removes a submodule": {[]edit{had("lib/sub", "x"), drop("lib/sub"), with(func(in *Input) { at(in, "lib/sub").OldMode = modeSubmodule }), rule(`{id: D, paths: [lib/sub], ops: [delete], for: [R1]}`)}, ""},

		"P011 assertion":             {[]edit{put("auth/auth_test.go", test+"\tt.Log(Check())\n}\n")}, "P011 auth/auth_test.go: TestCheck: assertions: 0 where it had 1"},
		"P011 skipped":               {[]edit{put("auth/auth_test.go", test+"\tif Check() != 1 {\n\t\tt.Fatal()\n\t}\n\tt.Skip()\n}\n")}, "P011 auth/auth_test.go: TestCheck: skips"},
		"P011 file deleted":          {[]edit{drop("auth/auth_test.go"), rule(`{id: D, paths: [auth/auth_test.go], ops: [delete], for: [R1]}`)}, "P011 auth/auth_test.go: TestCheck: the test is removed"},
		"P011 rewritten as a table":  {[]edit{put("auth/auth_test.go", test+"\tfor _, want := range []int{1} {\n\t\tif got := Check(); got != want {\n\t\t\tt.Errorf(\"got %d\", got)\n\t\t}\n\t}\n}\n")}, ""},
		"P011 TestMain":              {[]edit{put("auth/main_test.go", "package auth\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n")}, "P011 auth/main_test.go: TestMain is new"},
		"P011 TestMain of its own":   {[]edit{put("auth/new/main_test.go", "package auth\n\nfunc TestMain(m *testing.M) { m.Run() }\n")}, ""},
		"P011 test does not parse":   {[]edit{put("auth/more_test.go", "package auth\n\nfunc (\n")}, "P011 auth/more_test.go: expected"},
		"P011 conftest":              {[]edit{had("web/test_a.py", "def test_a(): pass\n"), put("web/conftest.py", "import os\n"), allowWeb}, "P011 web/conftest.py|warn P007 "},
		"P011 conftest elsewhere":    {[]edit{had("lib/test_a.py", "def test_a(): pass\n"), put("web/conftest.py", "import os\n"), allowWeb}, "warn P007 "},
		"P011 jest":                  {[]edit{had("web/a.test.js", "x"), had("web/jest.config.js", "x"), put("web/jest.config.js", "y"), allowWeb}, "P011 web/jest.config.js|warn P007 "},
		"P011 mocks":                 {[]edit{had("web/a.test.js", "x"), put("web/__mocks__/fs.js", "y"), allowWeb}, "P011 web/__mocks__/fs.js|warn P007 "},
		"P011 test script":           {[]edit{had("web/a.test.js", "x"), had("web/package.json", `{"scripts": {"test": "jest", "lint": "x"}}`), put("web/package.json", `{"scripts": {"test": "true", "lint": "x"}}`), allowWeb}, "P011 web/package.json: the part of it that configures the test runner differs"},
		"P011 another script":        {[]edit{had("web/a.test.js", "x"), had("web/package.json", `{"scripts": {"test": "jest", "lint": "x"}}`), put("web/package.json", `{"version": "2.0.0", "scripts": {"lint": "y", "test": "jest"}}`), allowWeb}, ""},
		"P011 pytest in pyproject":   {[]edit{had("web/test_a.py", "x"), had("web/setup.cfg", "[metadata]\nname = x\n[tool:pytest]\naddopts = -x\n"), put("web/setup.cfg", "[metadata]\nname = x\n[tool:pytest]\naddopts = -k none\n"), allowWeb}, "P011 web/setup.cfg|P006 web/setup.cfg"},
		"P011 surefire":              {[]edit{had("web/src/test/ATest.java", "x"), had("web/pom.xml", "<project></project>"), put("web/pom.xml", "<project><properties><skipTests>true</skipTests></properties></project>"), allowWeb}, "P011 web/pom.xml"},
		"P011 another property":      {[]edit{had("web/src/test/ATest.java", "x"), had("web/pom.xml", "<project></project>"), put("web/pom.xml", "<project><properties><encoding>UTF-8</encoding></properties></project>"), allowWeb}, ""},
		"P011 script test deleted":   {[]edit{had("web/a.test.js", "x"), drop("web/a.test.js"), allowWeb}, "P011 web/a.test.js: the test file is removed"},
		"P011 script test moved":     {[]edit{had("web/a.test.js", "x"), move("web/a.test.js", "web/b.test.js"), allowWeb}, ""},
		"P011 script test to a file": {[]edit{had("web/a.test.js", "x"), move("web/a.test.js", "web/a.txt"), allowWeb}, "P011 web/a.test.js: the test file is removed"},
		"P011 testdata":              {[]edit{had("auth/testdata/want.txt", "1"), put("auth/testdata/want.txt", "2")}, "P011 auth/testdata/want.txt: it is data of tests"},
		"P011 testdata, named":       {[]edit{had("auth/testdata/want.txt", "1"), put("auth/testdata/want.txt", "2"), plan(`"auth/**"]`, `"auth/**", "auth/testdata/*"]`)}, ""},
		"P011 testdata, new":         {[]edit{put("auth/testdata/want.txt", "2")}, ""},
		"P011 refactor":              {[]edit{kindIs(Refactor), put("auth/oauth.go", "package auth\n"), put("auth/auth_test.go", test+"\tif Check() != 1 {\n\t\tt.Fatal(1)\n\t}\n}\n")}, "P011 auth/auth_test.go: a plan of kind refactor touches none"},

		"P012 superseded":      {[]edit{put("ci.yml", "x"), with(func(in *Input) { in.BuiltOn = ID("plan_" + strings.Repeat("a", 64)) })}, "P012 : superseded|P001 ci.yml"},
		"P012 that still fits": {[]edit{with(func(in *Input) { in.BuiltOn = ID("plan_" + strings.Repeat("a", 64)) })}, ""},
		"P012 not superseded":  {[]edit{put("ci.yml", "x"), with(func(in *Input) { in.BuiltOn, _ = in.Contract.ID() })}, "P001 ci.yml"},

		"P013 case":              {[]edit{put("auth/Auth.go", "package auth\n")}, "P013 auth/Auth.go: auth/auth.go are one path"},
		"P013 case of directory": {[]edit{put("Auth/x.md", "x"), rule(`{id: A, paths: ["Auth/*"], ops: [create], for: [R1]}`)}, "P013 Auth: auth are one path"},
		"P013 case further down": {[]edit{had("lib/zeta/a", "x"), put("lib/Zeta/b", "x"), rule(`{id: A, paths: ["lib/**"], ops: [create], for: [R1]}`)}, "P013 lib/Zeta: lib/zeta are one path"},
		"P013 form":              {[]edit{had("auth/\u00e9", "x"), put("auth/e\u0301", "x")}, "P013 auth/e\u0301: is not in Unicode form NFC|P013 auth/e\u0301: are one path"},
		"P013 two new ones":      {[]edit{put("auth/a.md", "x"), put("auth/A.md", "x")}, "P013 auth/A.md: auth/a.md are one path"},
		"P013 other script":      {[]edit{put("auth/\u0645\u0631\u062d\u0628\u0627.md", "x")}, ""},
		"P013 homoglyph":         {[]edit{put("auth/\u0430uth.go", "package auth\n")}, ""}, // another letter is another path everywhere
		"P013 direction":         {[]edit{put("auth/a\u202egp.md", "x")}, "P013 auth/a\u202egp.md: direction of writing"},
		"P013 control":           {[]edit{put("auth/a\nb", "x")}, "P013 auth/a\nb: control"},
		"P013 git":               {[]edit{put("auth/.GIT/config", "x")}, "P013 auth/.GIT/config: git directory"},
		"P013 git on HFS":        {[]edit{put("auth/.g\u200cit/config", "x")}, "P013 auth/.g\u200cit/config: git directory"},
		"P013 git on NTFS":       {[]edit{put("auth/git~1/config", "x")}, "P013 auth/git~1/config: git directory"},
		"P013 device":            {[]edit{put("auth/aux.md", "x")}, "P013 auth/aux.md: device"},
		"P013 bytes":             {[]edit{put("auth/\xff.md", "x")}, `P013 auth/\xff.md: is not UTF-8`},
		"P013 of the base":       {[]edit{had("auth/aux.md", "x"), put("auth/aux.md", "y")}, ""},
		"P013 base collides":     {[]edit{had("docs/A", "x"), had("docs/a", "x")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := honest(t)
			for _, e := range c.edits {
				e(&w)
			}
			r := check(t, w.input(t))
			left := slices.Clone(r.Violations)
			errors := false
			for want := range strings.SplitSeq(c.want, "|") {
				if want == "" {
					continue
				}
				severity := Error
				if rest, ok := strings.CutPrefix(want, "warn "); ok {
					severity, want = Warn, rest
				}
				errors = errors || severity == Error
				head, text, _ := strings.Cut(want, ": ")
				code, path, _ := strings.Cut(head, " ")
				i := slices.IndexFunc(left, func(v Violation) bool {
					return string(v.Code) == code && v.Path == path && v.Severity == severity && strings.Contains(v.Message+" "+v.Rule, text)
				})
				if i < 0 {
					t.Errorf("%q is not said", want)
					continue
				}
				left = slices.Delete(left, i, i+1)
			}
			if len(left) > 0 {
				t.Errorf("said beside what is wanted: %+v", left)
			}
			if want := map[bool]Outcome{true: No, false: Pass}[errors]; r.Outcome != want {
				t.Errorf("outcome is %s, want %s", r.Outcome, want)
			}
		})
	}
}

// onlyPolicy is a change of a protected path and of nothing else.
func onlyPolicy(w *world) {
	w.now = copied(w.base)
	w.now["proveto.yaml"] = "version: 1 # edited\n"
	w.contract = "version: 1\ngoal: g\nkind: config\nrequirements: [{id: R1, text: t}]\nscope: [{id: S1, paths: [proveto.yaml], ops: [modify], for: [R1]}]\n"
}

func at(in *Input, path string) *Change {
	for i := range in.Changes {
		if in.Changes[i].Path == path {
			return &in.Changes[i]
		}
	}
	return &Change{}
}

// twin makes two changes claim to be one rename; the second knows nothing of it.
func twin(in *Input, path, other string) { at(in, path).Twin = other }

func TestCheckOfNothingIsEmpty(t *testing.T) {
	t.Parallel()
	in := Input{Contract: parse(t, "version: 1\ngoal: g\n"), Policy: rules(t)}
	if r := check(t, in); r.Outcome != Empty {
		t.Errorf("outcome is %s", r.Outcome)
	}
	in = honest(t).input(t)
	in.Changes = nil
	if r := check(t, in); r.Outcome != No || !r.Has(P005) {
		t.Errorf("without what is required the outcome is %s: %v", r.Outcome, r.Violations)
	}
}

func TestCheckRefusesUnreadFacts(t *testing.T) {
	t.Parallel()
	in := honest(t).input(t)
	changes := in.Changes
	in.Facts = Facts{}
	if _, err := Check(in); err == nil {
		t.Error("a change whose files were not read is judged")
	}
	if _, err := Read(changes, nil); err == nil {
		t.Error("files that were not given are read")
	}
}

func TestWaiversCountWhereTheCodeAllows(t *testing.T) {
	t.Parallel()
	w := honest(t)
	w.now["ci.yml"] = "x"
	r := check(t, w.input(t))
	all := func(Violation) bool { return true }
	if got := r.Judged(all).Outcome; got != Pass {
		t.Errorf("a waived P001 is %s", got)
	}
	w.now["proveto.yaml"] = "x"
	if got := check(t, w.input(t)).Judged(all).Outcome; got != No {
		t.Errorf("a waived P003 is %s", got)
	}
	var fixed []string
	for _, c := range Codes() {
		if !c.Code.Waivable() {
			fixed = append(fixed, string(c.Code))
		}
	}
	if got := strings.Join(fixed, " "); got != "P003 P009 P012 P013" || len(Codes()) != 14 {
		t.Errorf("not waivable are %s of %d", got, len(Codes()))
	}
}

func TestUnprovenIsP008(t *testing.T) {
	t.Parallel()
	c := parse(t, sample(t))
	for state, want := range map[State]string{Proven: "", Refuted: "requirement R1 is refuted", NotMeasured: "not measured", Stale: "stale"} {
		got := Unproven(c, map[string]State{"R1": state})
		if (want == "") != (len(got) == 0) || len(got) > 0 && (got[0].Code != P008 || !strings.Contains(got[0].Message, want)) {
			t.Errorf("%s: got %v, want %q", state, got, want)
		}
	}
	if got := Unproven(c, nil); len(got) != 1 {
		t.Errorf("what was never measured gives %v", got)
	}
	c.Requirements[0].Acceptance = c.Requirements[0].Acceptance[2:]
	if got := Unproven(c, nil); len(got) != 1 || c.Requirements[0].Acceptance[0].Command == nil {
		t.Errorf("a requirement by a command gives %v", got)
	}
	c.Requirements[0].Acceptance = c.Requirements[0].Acceptance[1:]
	if got := Unproven(c, nil); len(got) != 0 {
		t.Errorf("a requirement for people gives %v", got)
	}
}

func TestOverspentIsP014(t *testing.T) {
	t.Parallel()
	b := parse(t, sample(t)).Budget
	if got := Overspent(b, Spent{5, 4, 2 * time.Hour}); len(got) > 0 {
		t.Errorf("a budget used in full gives %v", got)
	}
	got := Overspent(b, Spent{6, 4.01, 2*time.Hour + time.Second})
	var text []string
	for _, v := range got {
		text = append(text, string(v.Code)+" "+v.Message)
	}
	want := "P014 round 6, the budget allows 5; P014 4.01 USD are spent, the budget allows 4.00; P014 2h0m1s have passed, the budget allows 2h"
	if g := strings.Join(text, "; "); g != want {
		t.Errorf("got %q", g)
	}
	if got := Overspent(Budget{}, Spent{1000, 1000, time.Hour}); len(got) > 0 {
		t.Errorf("without a bound it gives %v", got)
	}
}

func TestPolicyWeakenedIsHandedOn(t *testing.T) {
	t.Parallel()
	w := honest(t)
	onlyPolicy(&w)
	w.with = func(in *Input) { in.Loosened = []string{"min_proven"} }
	if r := check(t, w.input(t)); len(r.Weakened) != 1 || !r.Has(P003) {
		t.Errorf("got %+v", r)
	}
}

func TestDiffProbeIsRefused(t *testing.T) {
	t.Parallel()
	good := honest(t).input(t)
	bad, code, err := DiffProbe(good)
	if err != nil {
		t.Fatal(err)
	}
	r := check(t, bad)
	if r.Outcome != No || len(r.Violations) != 1 || r.Violations[0].Code != P001 || code != P001 {
		t.Errorf("the probe gives %+v, want %s", r, code)
	}
	if r := check(t, good); r.Outcome != Pass {
		t.Errorf("making the probe changed the input: %+v", r)
	}
	for scope, want := range map[string]Code{"*": P001, "**": P003, "**/proveto_probe*": P003, "{*,*/**}": P003} {
		in := Input{Contract: &Contract{Scope: []Rule{{ID: "S1", Paths: []string{scope}, Ops: []Op{Create}}}}}
		if path, _, err := ProbeFile(in.Contract, nil); err != nil || set(t, scope).Match(path) {
			t.Errorf("the probe beside %s is %q (%v)", scope, path, err)
		}
		bad, code, err := DiffProbe(in)
		if err != nil {
			t.Fatal(err)
		}
		if r := check(t, bad); code != want || r.Outcome != No || !r.Has(code) {
			t.Errorf("the probe beside %s gives %+v, want %s", scope, r, want)
		}
		if refused, err := ProbeRefused(in); err != nil || !refused {
			t.Errorf("the probe beside %s is not refused (%v)", scope, err)
		}
	}
}

func TestProbeRefusedIsAboutTheProbe(t *testing.T) {
	t.Parallel()
	w := honest(t)
	w.now["ci.yml"] = "x" // a violation of its own says nothing about the probe
	in := w.input(t)
	if refused, err := ProbeRefused(in); err != nil || !refused {
		t.Errorf("the probe is not refused (%v)", err)
	}
	if refuses(Result{Outcome: No, Violations: []Violation{{Code: P001, Severity: Error, Path: "ci.yml"}}}, P001, "probe") {
		t.Error("a violation of another path counts as a refusal of the probe")
	}
}

// TestCheckDeniesByDefault: whatever the contract, a path is admitted only when a
// rule names it and its operation.
func TestCheckDeniesByDefault(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := contracts().Draw(t, "contract")
		c.Budget, c.Kind = Budget{}, Behaviour
		for i := range c.Scope {
			c.Scope[i].MaxAdded, c.Scope[i].Required = nil, false
			c.Scope[i].Ops = rapid.SliceOfN(rapid.SampledFrom([]Op{Create, Modify, Delete}), 1, 3).Draw(t, "ops")
		}
		in := Input{Contract: c, Facts: Facts{read: true}}
		for i, p := range rapid.SliceOfNDistinct(paths(), 1, 4, rapid.ID).Draw(t, "paths") {
			ch := Change{Path: p, OldMode: modeFile, NewMode: modeFile, OldBlob: "a", NewBlob: "b"}
			switch i % 3 {
			case 1:
				ch.OldMode, ch.OldBlob = "", ""
			case 2:
				ch.NewMode, ch.NewBlob = "", ""
			}
			in.Changes = append(in.Changes, ch)
		}
		r := check(t, in)
		for _, ch := range in.Changes {
			want := slices.ContainsFunc(c.Scope, func(r Rule) bool {
				return slices.Contains(r.Ops, ch.Op()) && slices.ContainsFunc(r.Paths, func(p string) bool { return reference(p).MatchString(ch.Path) })
			})
			got := slices.ContainsFunc(r.Matched, func(m Match) bool { return m.Path == ch.Path })
			if got != want {
				t.Fatalf("%s %q is admitted: %v, want %v", ch.Op(), ch.Path, got, want)
			}
			if !want && r.Outcome != No {
				t.Fatalf("%q is in no rule and the outcome is %s", ch.Path, r.Outcome)
			}
		}
	})
}

func TestResultJSON(t *testing.T) {
	t.Parallel()
	w := honest(t)
	w.now["x/\xff"] = "x"
	in := w.input(t)
	in.Requirements = map[string]State{"R1": Stale}
	b, err := json.Marshal(check(t, in))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"outcome":"no","matched":[{"path":"auth/auth.go","op":"modify","rule":"S1"},{"path":"auth/oauth.go","op":"create","rule":"S1"},{"path":"auth/oauth_test.go","op":"create","rule":"S3"},{"path":"go.mod","op":"modify","rule":"S2"},{"path":"go.sum","op":"modify","rule":"S2"}],` +
		`"violations":[{"code":"P001","severity":"error","path":"x/\\xff","op":"create","message":"no scope rule names it"},{"code":"P013","severity":"error","path":"x/\\xff","op":"create","message":"its path is not UTF-8"}],` +
		`"unmet":[],"requirements":{"R1":"stale"}}`
	if string(b) != want {
		t.Errorf("got:\n%s\nwant:\n%s", b, want)
	}
}

// BenchmarkCheck is 1,000 changed files against 100 rules in a tree of 10,000.
func BenchmarkCheck(b *testing.B) {
	c := &Contract{Version: 1, Goal: "g", Kind: Behaviour}
	for i := range 100 {
		c.Scope = append(c.Scope, Rule{ID: fmt.Sprintf("S%d", i), Paths: []string{fmt.Sprintf("src/**/pkg%d/*.{go,txt}", i), fmt.Sprintf("lib/%d/**", i)}, Ops: []Op{Create, Modify}})
	}
	in := Input{Contract: c, Facts: Facts{read: true}, Policy: rules(b)}
	for i := range 10000 {
		p := fmt.Sprintf("src/a/b/c/pkg%d/file_%d.txt", i%100, i)
		in.Tree = append(in.Tree, p)
		if i%10 == 0 {
			ch := Change{Path: p, NewMode: modeFile, NewBlob: "b", Added: 10}
			if i%20 == 0 {
				ch.OldMode, ch.OldBlob = modeFile, "a"
				in.Base = append(in.Base, p)
			}
			in.Changes = append(in.Changes, ch)
		} else {
			in.Base = append(in.Base, p)
		}
	}
	for b.Loop() {
		if r := check(b, in); r.Outcome != Pass {
			b.Fatal(r.Violations[:1])
		}
	}
}

// BenchmarkRead is the reading of 100 changed Go files, half of them tests, of 300
// lines each.
func BenchmarkRead(b *testing.B) {
	blobs := map[string][]byte{}
	var changes []Change
	for i := range 100 {
		var src strings.Builder
		src.WriteString("package p\n\nimport \"testing\"\n")
		for j := range 60 {
			if i%2 == 0 {
				fmt.Fprintf(&src, "\nfunc Test%d(t *testing.T) {\n\tif F(%d) != %d {\n\t\tt.Fatal(%d)\n\t}\n}\n", j, i, j, j)
			} else {
				fmt.Fprintf(&src, "\nfunc F%d_%d(a int) int {\n\tx := a * %d\n\treturn x + 1\n}\n", i, j, j)
			}
		}
		path := fmt.Sprintf("p/f%d.go", i)
		if i%2 == 0 {
			path = fmt.Sprintf("p/f%d_test.go", i)
		}
		old, now := fmt.Sprintf("o%d", i), fmt.Sprintf("n%d", i)
		blobs[old], blobs[now] = []byte(src.String()), []byte(src.String()+"\n// edited\n")
		changes = append(changes, Change{Path: path, OldMode: modeFile, NewMode: modeFile, OldBlob: old, NewBlob: now})
	}
	for b.Loop() {
		if _, err := Read(changes, blobs); err != nil {
			b.Fatal(err)
		}
	}
}
