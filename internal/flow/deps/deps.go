// Package deps reads which dependencies manifests and lock files name, and
// compares two states of one.
//
// Files are parsed, never searched for text: go.mod, go.sum, go.work and
// vendor/modules.txt, package.json and package-lock.json, requirements files of
// pip, and pom.xml. Other manifests are known by their names and are opaque: that
// they changed is all that can be said. The package reads no file and asks no
// registry; what a version resolves to elsewhere is not its business.
package deps

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Format is a kind of file that names dependencies.
type Format string

// The formats. Opaque has no parser here.
const (
	GoMod        Format = "go.mod"
	GoSum        Format = "go.sum"
	GoWork       Format = "go.work"
	GoVendor     Format = "vendor/modules.txt"
	PackageJSON  Format = "package.json"
	PackageLock  Format = "package-lock.json"
	Requirements Format = "requirements.txt"
	Pom          Format = "pom.xml"
	Opaque       Format = "opaque"
)

var byName = map[string]Format{
	"go.mod": GoMod, "go.sum": GoSum, "go.work": GoWork, "go.work.sum": GoSum,
	"package.json": PackageJSON, "package-lock.json": PackageLock, "npm-shrinkwrap.json": PackageLock,
	"pom.xml": Pom,
}

// opaque are the names of manifests, lock files and settings of package managers
// for which there is no parser here.
var opaque = []string{
	"pyproject.toml", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile", "Pipfile.lock", "setup.py", "setup.cfg", "environment.yml", "pip.conf", "pylock.toml",
	"yarn.lock", "pnpm-lock.yaml", "pnpm-workspace.yaml", "bun.lock", "bun.lockb", "deno.json", "deno.lock", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs",
	"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.lockfile", "buildscript-gradle.lockfile", "libs.versions.toml", "verification-metadata.xml",
	"gradle-wrapper.properties", "gradle-wrapper.jar", "maven-wrapper.properties", "maven-wrapper.jar",
	"Cargo.toml", "Cargo.lock", "Gemfile", "Gemfile.lock", "composer.json", "composer.lock", "mix.exs", "mix.lock",
	"Package.swift", "Package.resolved", "packages.lock.json", "Directory.Packages.props", "MODULE.bazel", "MODULE.bazel.lock",
}

// Of tells by its path whether a file names dependencies. Fixtures of tests below
// testdata do not.
func Of(name string) (Format, bool) {
	dir, base := path.Split(name)
	if strings.HasPrefix(dir, "testdata/") || strings.Contains(dir, "/testdata/") {
		return "", false
	}
	if f, ok := byName[base]; ok {
		return f, true
	}
	switch {
	case base == "modules.txt" && (dir == "vendor/" || strings.HasSuffix(dir, "/vendor/")):
		return GoVendor, true
	case strings.HasSuffix(base, ".txt") &&
		(strings.HasPrefix(base, "requirements") || strings.HasPrefix(base, "constraints") || strings.HasSuffix(base, "requirements.txt") || path.Base(dir) == "requirements"):
		return Requirements, true
	case slices.Contains(opaque, base), strings.HasSuffix(base, ".csproj"), strings.HasSuffix(base, ".gemspec"),
		base == "extensions.xml" && strings.HasSuffix(dir, ".mvn/"):
		return Opaque, true
	}
	return "", false
}

// Pin is one way in which a file names a dependency.
type Pin struct {
	Version  string // as written; empty: the dependency is not required, only touched by a setting
	Source   string // where it comes from or how it is used, when that is said
	Checksum string
	// Locked says that the pin stands for exact bytes: another checksum, or without
	// one another source, is other code under the same name.
	Locked bool
}

// Set is what one file names.
type Set struct {
	pins map[string][]Pin
	// sums says that the file only vouches for what others name.
	sums bool
	// direct and needs are the graph of a lock file: who is asked for, and what
	// each needs. Nil in other files.
	direct []string
	needs  map[string][]string
}

func newSet() Set { return Set{pins: map[string][]Pin{}} }

func (s Set) add(name string, p Pin) {
	if !slices.Contains(s.pins[name], p) {
		s.pins[name] = append(s.pins[name], p)
	}
}

// Parse reads a file. Formats that are opaque give an error, as do files that are
// not what their name says.
func Parse(f Format, body []byte) (Set, error) {
	switch f {
	case GoMod:
		return goMod(body)
	case GoSum:
		return goSum(body)
	case GoWork:
		return goWork(body)
	case GoVendor:
		return goVendor(body)
	case PackageJSON:
		return packageJSON(body)
	case PackageLock:
		return packageLock(body)
	case Requirements:
		return requirements(body)
	case Pom:
		return pom(body)
	}
	return Set{}, fmt.Errorf("there is no parser for %s", f)
}

// Verb is what happened to a dependency.
type Verb string

// The verbs.
const (
	Add    Verb = "add"
	Bump   Verb = "bump" // also: replaced, taken from elsewhere, used otherwise
	Remove Verb = "remove"
)

// Change is one dependency that two states of a file name differently.
type Change struct {
	Name string
	Verb Verb
	Old  string // versions, for people
	New  string
	// Swapped says that a version that stayed has another checksum or comes from
	// elsewhere: the same name now stands for other code.
	Swapped bool
	// Roots are, of a dependency that the project does not ask for itself, those
	// that it asks for and through which this one came or went. Nil when the
	// project asks for it, or when the file does not say.
	Roots []string
}

// Compare lists what differs, by name. The zero Set is that of a file that was
// not there.
func Compare(old, now Set) []Change {
	names := map[string]bool{}
	for n := range old.pins {
		names[n] = true
	}
	for n := range now.pins {
		names[n] = true
	}
	var out []Change
	for n := range names {
		a, b := old.pins[n], now.pins[n]
		if same(a, b) {
			continue
		}
		c := Change{Name: n, Verb: verb(a, b), Old: versions(a), New: versions(b), Swapped: swapped(a, b)}
		if (old.sums || now.sums) && !c.Swapped {
			continue
		}
		if c.Verb == Remove {
			c.Roots = old.roots(n)
		} else {
			c.Roots = now.roots(n)
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func same(a, b []Pin) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(p Pin) bool { return !slices.Contains(b, p) })
}

// verb tells what happened: a dependency is there when some pin has a version.
func verb(old, now []Pin) Verb {
	was := slices.ContainsFunc(old, func(p Pin) bool { return p.Version != "" })
	is := slices.ContainsFunc(now, func(p Pin) bool { return p.Version != "" })
	switch {
	case !was && is:
		return Add
	case was && !is:
		return Remove
	}
	return Bump
}

// swapped tells whether a version that was locked to some bytes is now locked to
// others as well, or instead.
func swapped(old, now []Pin) bool {
	for _, n := range now {
		known, fits := false, false
		for _, o := range old {
			if !o.Locked || !n.Locked || o.Version != n.Version {
				continue
			}
			known = true
			if o.Checksum != "" && n.Checksum != "" {
				fits = fits || o.Checksum == n.Checksum
			} else {
				fits = fits || o.Source == n.Source
			}
		}
		if known && !fits {
			return true
		}
	}
	return false
}

func versions(pins []Pin) string {
	var out []string
	for _, p := range pins {
		s := strings.TrimSpace(p.Version + " " + p.Source)
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// roots are the direct dependencies through which a name is reached, sorted; nil
// for a direct one and without a graph.
func (s Set) roots(name string) []string {
	if s.needs == nil || slices.Contains(s.direct, name) {
		return nil
	}
	neededBy := map[string][]string{}
	for from, to := range s.needs {
		for _, t := range to {
			neededBy[t] = append(neededBy[t], from)
		}
	}
	seen := map[string]bool{name: true}
	todo := []string{name}
	out := []string{}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if slices.Contains(s.direct, n) {
			out = append(out, n)
		}
		for _, by := range neededBy[n] {
			if !seen[by] {
				seen[by] = true
				todo = append(todo, by)
			}
		}
	}
	slices.Sort(out)
	return out
}
