package plan

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/late"
)

// RunnerChange is a file that decides how tests run, or that runs code around
// them, and that a change touches.
type RunnerChange struct {
	Path string
	Why  string // what the file is
}

// runnerFiles are hook files and configurations of test runners: any edit of one
// can turn red into green.
var runnerFiles = sync.OnceValue(func() Set {
	s, err := CompileSet(runnerPatterns)
	if err != nil {
		panic(err) // a pattern of this file is wrong
	}
	return s
})

var runnerPatterns = []string{
	// Python
	"**/conftest.py", "**/pytest.ini", "**/.pytest.ini", "**/noxfile.py", "**/{site,user}customize.py", "**/*.pth", "**/.coveragerc",
	// JavaScript
	"**/jest.{config,setup,preset}.*", "**/jest-{setup,preset}.*", "**/{vitest,vite,ava,cypress,playwright,wdio,web-test-runner}.config.*", "**/vitest.{setup,workspace}.*",
	"**/setup{Tests,-tests,Test,-test}.*", "**/karma.conf.*", "**/.mocharc*", "**/mocha.opts", "**/.taprc", "**/jasmine.json", "**/{babel.config.*,.babelrc*}", "**/__mocks__/**",
	// Java
	"**/junit-platform.properties", "**/testng*.xml", "**/META-INF/services/org.junit.*", "**/mockito-extensions/**", "**/.mvn/{maven.config,jvm.config}",
	// Go
	"**/go.env", "**/.gotestsum*",
}

// sharedRunner is, for a file that holds the configuration of a runner among
// other things, the part that is about the runner; nil for other files.
func sharedRunner(name string) func([]byte) string {
	switch base := path.Base(name); {
	case base == "package.json":
		return packageRunner
	case base == "pyproject.toml", base == "setup.cfg", base == "tox.ini":
		return sectionRunner
	case base == "pom.xml":
		return pomRunner
	case strings.HasPrefix(base, "build.gradle"):
		return gradleRunner
	}
	return nil
}

func runnerChange(c Change, old, now []byte) (RunnerChange, bool) {
	if c.OldBlob == c.NewBlob && kind(c.OldMode) == kind(c.NewMode) && c.Twin == "" {
		return RunnerChange{}, false
	}
	if runnerFiles().Match(c.Path) {
		return RunnerChange{c.Path, "it configures the test runner or runs around the tests"}, true
	}
	if part := sharedRunner(c.Path); part != nil && part(old) != part(now) {
		return RunnerChange{c.Path, "the part of it that configures the test runner differs"}, true
	}
	return RunnerChange{}, false
}

// packageRunner is what a package.json says about tests: its test scripts and the
// settings of runners. What does not parse counts whole.
func packageRunner(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	var doc, scripts map[string]json.RawMessage
	if json.Unmarshal(body, &doc) != nil {
		return string(body)
	}
	part := map[string]json.RawMessage{}
	if raw, ok := doc["scripts"]; ok && json.Unmarshal(raw, &scripts) == nil {
		for name, s := range scripts {
			if strings.Contains(name, "test") {
				part["scripts."+name] = s
			}
		}
	}
	for _, name := range []string{"jest", "mocha", "vitest", "ava", "nyc", "c8", "tap", "jasmine", "karma", "babel"} {
		if s, ok := doc[name]; ok {
			part[name] = s
		}
	}
	if len(part) == 0 {
		return ""
	}
	out, err := evidence.Canonical(part)
	if err != nil {
		return string(body)
	}
	return string(out)
}

var (
	sectionHead   = late.Regexp(`^\s*\[+\s*([^\]]*?)\s*\]+\s*([#;].*)?$`)
	runnerSection = late.Regexp(`(?i)(pytest|coverage|testenv|tox|nox|nose|unittest|hatch\.envs)`)
	runnerKey     = late.Regexp(`(?i)^[^=#\[{]*\b(pytest|addopts|coverage)\b[^=#]*=`)
)

// sectionRunner is what a file of sections says about tests: the sections of
// runners, and dotted keys about them in other sections.
func sectionRunner(body []byte) string {
	var out []string
	in := false
	for line := range strings.Lines(string(body)) {
		line = strings.TrimRight(line, " \t\r\n")
		if m := sectionHead().FindStringSubmatch(line); m != nil {
			in = runnerSection().MatchString(m[1])
		}
		text := strings.TrimSpace(line)
		if text != "" && !strings.HasPrefix(text, "#") && (in || runnerKey().MatchString(text)) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

var (
	xmlComment = late.Regexp(`(?s)<!--.*?-->`)
	xmlPlugin  = late.Regexp(`(?s)<plugin>.*?</plugin>`)
	testPlugin = late.Regexp(`(?i)(surefire|failsafe|jacoco|junit)`)
	testSwitch = late.Regexp(`(?i)(surefire|failsafe|skipTests|skipITs|maven\.test|testFailureIgnore|excludedGroups|testSourceDirectory)[^\n]*`)
	gradleTest = late.Regexp(`(?i)(useJUnit|useTestNG|ignoreFailures|failOnNo|tasks\.(named|withType).*test|^\s*test\b|excludeTests|includeTests|onlyIf|enabled\s*=\s*false|jvmArgs|systemProperty)`)
)

// pomRunner is what a pom.xml says about tests: the plugins that run them, and the
// switches that leave them out.
func pomRunner(body []byte) string {
	text := xmlComment().ReplaceAllString(string(body), "")
	var out []string
	for _, p := range xmlPlugin().FindAllString(text, -1) {
		if testPlugin().MatchString(p) {
			out = append(out, strings.Join(strings.Fields(p), " "))
		}
	}
	out = append(out, testSwitch().FindAllString(xmlPlugin().ReplaceAllString(text, ""), -1)...)
	return strings.Join(out, "\n")
}

func gradleRunner(body []byte) string {
	lines := map[string]bool{}
	for line := range strings.Lines(string(body)) {
		if line = strings.TrimSpace(line); gradleTest().MatchString(line) && !strings.HasPrefix(line, "//") {
			lines[line] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(lines)), "\n")
}
