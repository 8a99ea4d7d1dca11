package golang

import (
	"testing"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/lang"
)

// Code that names our additions to package testing can ask the switch itself: it
// builds with our overlay and nowhere else, so it is not measured. Its importers
// are only concerned by what lies outside its tests.
func TestWhatBuildsOnlyWithOurAdditionsIsNotMeasured(t *testing.T) {
	t.Parallel()
	b := setup(t, "testdata/undefined.txtar")
	scan := b.scan(".")
	for unit, refused := range map[string]bool{"spy": true, "indirect": true, "uses": false, "twin": false} {
		s, err := b.d.Build(t.Context(), b.w, scan, "example.com/undefined/"+unit)
		if refused != fault.Has(err, lang.BuildFailed) || (err == nil) == refused {
			t.Errorf("build of %s = %v, want it refused %v", unit, err, refused)
		}
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
