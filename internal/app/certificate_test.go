package app

import "testing"

func TestNameOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ unit, id, want string }{
		{"example.com/small", "scip-go gomod example.com/small . Total().", "small.Total"},
		{"github.com/Masterminds/semver/v3", "scip-go gomod github.com/Masterminds/semver/v3 . Version#Compare().", "semver.Version.Compare"},
		{"example.com/m/a/b", "scip-go gomod example.com/m . a/b/`x.y`#M(+1).", "b.x.y.M"},
	} {
		if got := nameOf(tt.unit, tt.id); got != tt.want {
			t.Errorf("nameOf(%q, %q) = %q, want %q", tt.unit, tt.id, got, tt.want)
		}
	}
}
