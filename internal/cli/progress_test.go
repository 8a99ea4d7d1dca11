package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgressGoesOn holds a long phase to a line every thirty seconds, and none
// after its end.
func TestProgressGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		c := &command{env: Env{Stderr: &stderr, Getenv: func(string) string { return "" }}}
		p := c.newProgress(0)
		p.Count("build", 1, 2, "pay")
		time.Sleep(61*time.Second + time.Millisecond)
		p.close()
		time.Sleep(time.Minute)
		if got, want := stderr.String(), "build  1/2  pay\nbuild  1/2  pay  30.0 s\nbuild  1/2  pay  1 min 00 s\n"; got != want {
			t.Errorf("stderr %q, want %q", got, want)
		}
	})
}
