package app

import (
	"runtime"
	"runtime/debug"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/view"
)

// VersionString is the version of this build: what the release set, else what
// the Go toolchain recorded, else "dev".
func VersionString(set string) string {
	if set != "" {
		return set
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// BuildVersion is what proveto version shows.
func BuildVersion(version string) view.Version {
	v := view.Version{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Schemas: []string{
		StartSchema, evidence.RunSchema, evidence.CertificateSchema, evidence.MeasurementSchema,
	}}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return v
}
