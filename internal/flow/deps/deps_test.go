package deps

import (
	"fmt"
	"strings"
	"testing"
)

// told is a change in one line: verb name old > new, with ! when swapped and the
// roots after a slash.
func told(c Change) string {
	s := fmt.Sprintf("%s %s %s > %s", c.Verb, c.Name, c.Old, c.New)
	if c.Swapped {
		s += " !"
	}
	if c.Roots != nil {
		s += " / " + strings.Join(c.Roots, ",")
	}
	return s
}

func read(t *testing.T, f Format, body string) Set {
	t.Helper()
	if body == "" {
		return Set{}
	}
	s, err := Parse(f, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const goModule = "module m\n\ngo 1.25\n\nrequire a.example/x v1.0.0\n"

func TestCompare(t *testing.T) {
	t.Parallel()
	lock := func(entries string) string {
		return `{"lockfileVersion": 3, "packages": {"": {"dependencies": {"top": "^1"}},` + entries + `}}`
	}
	top := `"node_modules/top": {"version": "1.0.0", "resolved": "https://r/top", "integrity": "sha512-A", "dependencies": {"low": "1"}}`
	low := `"node_modules/low": {"version": "1.0.0", "resolved": "https://r/low", "integrity": "sha512-B"}`
	for name, c := range map[string]struct {
		format   Format
		old, now string
		want     []string
	}{
		"go.mod: nothing": {GoMod, goModule, "// another comment\nmodule m\ngo 1.25\nrequire (\n\ta.example/x v1.0.0 // indirect\n)\n", nil},
		"go.mod: added":   {GoMod, goModule, goModule + "require b.example/y v0.1.0\n", []string{"add b.example/y  > v0.1.0"}},
		"go.mod: bumped":  {GoMod, goModule, strings.Replace(goModule, "v1.0.0", "v1.1.0", 1), []string{"bump a.example/x v1.0.0 > v1.1.0"}},
		"go.mod: removed": {GoMod, goModule, "module m\n\ngo 1.25\n", []string{"remove a.example/x v1.0.0 > "}},
		"go.mod: replaced": {GoMod, goModule, goModule + "replace a.example/x => ./stub\n", []string{
			"bump a.example/x v1.0.0 > replace => ./stub, v1.0.0",
		}},
		"go.mod: replaced, required by others": {GoMod, goModule, goModule + "replace z.example/z v1.0.0 => z.example/fork v1.0.0\n", []string{
			"bump z.example/z  > replace v1.0.0 => z.example/fork v1.0.0",
		}},
		"go.mod: excluded":  {GoMod, goModule, goModule + "exclude a.example/x v1.0.1\n", []string{"bump a.example/x v1.0.0 > exclude v1.0.1, v1.0.0"}},
		"go.mod: language":  {GoMod, goModule, strings.Replace(goModule, "1.25", "1.26", 1) + "toolchain go1.26.1\n", []string{"bump go 1.25 > 1.26", "bump toolchain  > go1.26.1"}},
		"go.mod: tool":      {GoMod, goModule, goModule + "tool a.example/x/cmd\n", []string{"add a.example/x/cmd  > tool"}},
		"go.mod: godebug":   {GoMod, goModule, goModule + "godebug http2client=0\n", []string{"bump godebug http2client  > 0"}},
		"go.mod: all of it": {GoMod, "", goModule, []string{"add a.example/x  > v1.0.0", "bump go  > 1.25", "bump module  > m"}},
		"go.sum: lines come and go": {
			GoSum, "a v1 h1:A=\n", "a v1/go.mod h1:B=\nb v1 h1:C=\n", nil,
		},
		"go.sum: other hash":      {GoSum, "a v1 h1:A=\nb v1 h1:B=\n", "a v1 h1:X=\nb v1 h1:B=\n", []string{"bump a v1 > v1 !"}},
		"go.sum: a second hash":   {GoSum, "a v1 h1:A=\n", "a v1 h1:A=\na v1 h1:X=\n", []string{"bump a v1 > v1 !"}},
		"go.work: used, replaced": {GoWork, "go 1.25\nuse .\n", "go 1.25\nuse (\n\t.\n\t./b\n)\nreplace a.example/x => ./y\n", []string{"add ./b  > use", "bump a.example/x  > replace => ./y"}},
		"vendor": {GoVendor, "# a v1.0.0\n## explicit\na\n", "# a v1.1.0\n## explicit\na\n# b => ./b\n", []string{
			"bump a v1.0.0 > v1.1.0", "add b  > replaced replace => ./b",
		}},
		"package.json: nothing": {PackageJSON, `{"dependencies": {"a": "^1"}}`, `{"version": "2.0.0", "scripts": {"x": "y"}, "dependencies": {"a": "^1"}}`, nil},
		"package.json: sections": {
			PackageJSON, `{"dependencies": {"a": "^1", "b": "1"}}`, `{"dependencies": {"a": "^2"}, "devDependencies": {"b": "1", "@s/c": ""}}`,
			[]string{"add @s/c  > * devDependencies", "bump a ^1 dependencies > ^2 dependencies", "bump b 1 dependencies > 1 devDependencies"},
		},
		"package.json: overrides": {
			PackageJSON, `{}`, `{"overrides": {"a": "1", "b@2": {"c": "npm:evil@1"}}, "pnpm": {"overrides": {"q>d": "1"}}, "resolutions": {"e": "1"}, "packageManager": "pnpm@9"}`,
			[]string{
				"bump a  > overrides a => 1", "bump c  > overrides b@2 c => npm:evil@1", "bump d  > overrides q>d => 1", "bump e  > resolutions e => 1", "bump pnpm  > packageManager 9",
			},
		},
		"lock: nothing":             {PackageLock, lock(top + "," + low), lock(low + "," + top), nil},
		"lock: a new one below top": {PackageLock, lock(top), lock(top + "," + low), []string{"add low  > 1.0.0 https://r/low / top"}},
		"lock: one from nowhere": {
			PackageLock, lock(top + "," + low), lock(top + "," + low + `,"node_modules/evil": {"version": "1.0.0"}`), []string{"add evil  > 1.0.0 / "},
		},
		"lock: the direct one": {
			PackageLock, lock(top), lock(strings.Replace(top, "1.0.0", "1.0.1", 1)), []string{"bump top 1.0.0 https://r/top > 1.0.1 https://r/top"},
		},
		"lock: other checksum": {
			PackageLock, lock(top), lock(strings.Replace(top, "sha512-A", "sha512-X", 1)), []string{"bump top 1.0.0 https://r/top > 1.0.0 https://r/top !"},
		},
		"lock: checksum dropped, other place": {
			PackageLock, lock(low), lock(`"node_modules/low": {"version": "1.0.0", "resolved": "https://evil/low"}`),
			[]string{"bump low 1.0.0 https://r/low > 1.0.0 https://evil/low ! / "},
		},
		"lock: case does not hide": {
			PackageLock, lock(low), lock(`"node_modules/low": {"version": "6.6.6", "Version": "1.0.0", "resolved": "https://r/low", "integrity": "sha512-B"}`),
			[]string{"bump low 1.0.0 https://r/low > 6.6.6 https://r/low / "},
		},
		"lock: version 1, nested": {
			PackageLock, `{"lockfileVersion": 1, "dependencies": {"a": {"version": "1"}}}`,
			`{"lockfileVersion": 1, "dependencies": {"a": {"version": "1", "dependencies": {"b": {"version": "2"}}}}}`,
			[]string{"add b  > 2"},
		},
		"pip": {
			Requirements, "Foo_Bar==1.0 ; python_version > '3' # why\nold\n",
			"foo-bar == 1.0;python_version>'3'\nnew[x]>=2,\\\n  <3\n--index-url https://evil\ngit+https://h/x@v1\nu @ https://h/u.whl\n",
			[]string{
				"add git+https://h/x@v1  > path", "add new  > [x]>=2,<3", "remove old * > ",
				"bump option --index-url  > https://evil", "add u  > @https://h/u.whl",
			},
		},
		"pip: hashes": {Requirements, "a==1 --hash=sha256:aa\n", "a==1 \\\n --hash=sha256:bb\n", []string{"bump a ==1 > ==1 !"}},
		"pom": {
			Pom, `<project><properties><v>1</v></properties><dependencies><dependency><groupId>g</groupId><artifactId>a</artifactId><version>${v}</version></dependency></dependencies></project>`,
			`<project><properties><v>2</v></properties><dependencies><dependency><groupId>g</groupId><artifactId>a</artifactId><version>${v}</version></dependency></dependencies>
			<repositories><repository><url>https://evil</url></repository></repositories>
			<build><plugins><plugin><artifactId>p</artifactId></plugin></plugins></build></project>`,
			[]string{
				"bump g:a 1 /project/dependencies > 2 /project/dependencies", "add org.apache.maven.plugins:p  > managed /project/build/plugins",
				"add repository https://evil  > repository /project/repositories",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, ch := range Compare(read(t, c.format, c.old), read(t, c.format, c.now)) {
				got = append(got, told(ch))
			}
			if g, w := strings.Join(got, "\n"), strings.Join(c.want, "\n"); g != w {
				t.Errorf("got:\n%s\nwant:\n%s", g, w)
			}
		})
	}
}

func TestParseRefusesWhatIsNoManifest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    Format
		body string
	}{
		{GoMod, "require x"},
		{GoSum, "a b"},
		{GoWork, "use"},
		{PackageJSON, "[]"},
		{PackageJSON, `{"dependencies": 1}`},
		{PackageLock, "{}"},
		{Requirements, "a b c\n"},
		{Pom, "<x/>"},
		{Pom, "<project>"},
		{Opaque, ""},
	} {
		if _, err := Parse(c.f, []byte(c.body)); err == nil {
			t.Errorf("Parse(%s, %q) has no error", c.f, c.body)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Format{
		"go.mod": GoMod, "tools/go.mod": GoMod, "go.work.sum": GoSum, "vendor/modules.txt": GoVendor, "web/package.json": PackageJSON,
		"requirements-dev.txt": Requirements, "requirements/base.txt": Requirements, "dev-requirements.txt": Requirements, "constraints.txt": Requirements,
		"pyproject.toml": Opaque, "a/yarn.lock": Opaque, ".npmrc": Opaque, "x.csproj": Opaque, ".mvn/extensions.xml": Opaque,
		"README.md": "", "a.go": "", "modules.txt": "", "testdata/go.mod": "", "a/testdata/b/package.json": "", "notes.txt": "", "Go.mod": "",
	} {
		got, ok := Of(name)
		if got != want || ok != (want != "") {
			t.Errorf("Of(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{goModule, "a v1 h1:A=\n", "use .", `{"dependencies": {"a": {"version": "1"}}}`, "a>=1 ; x\n-r b\n", "<project><dependency/></project>", "# a v1 => b\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, format := range []Format{GoMod, GoSum, GoWork, GoVendor, PackageJSON, PackageLock, Requirements, Pom} {
			s, err := Parse(format, body)
			if err != nil {
				continue
			}
			if c := Compare(s, s); len(c) > 0 {
				t.Fatalf("%s %q differs from itself: %v", format, body, c)
			}
		}
	})
}
