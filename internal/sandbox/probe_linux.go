package sandbox

import (
	"context"

	"github.com/proveto/proveto/internal/evidence"
)

// LevelReport says whether one level works on this machine.
type LevelReport struct {
	Level   evidence.Level
	Works   bool
	Network evidence.Network // proven, when it works
	Notes   []string         // what is weaker than the level could be
	Reason  string           // why it does not work
	Enable  string           // what the level needs of the machine, when it does not work
}

// Probe opens a box at each level, strongest first.
func Probe(ctx context.Context) []LevelReport {
	var out []LevelReport
	for _, level := range []evidence.Level{evidence.Namespaces, evidence.Landlock, evidence.LimitsOnly} {
		r := LevelReport{Level: level}
		b, err := openLevel(ctx, Spec{}, level)
		if err == nil {
			r.Works, r.Network, r.Notes = true, b.isolation.Network, b.notes
			err = b.Close()
		}
		if err != nil {
			r.Works, r.Reason, r.Enable = false, err.Error(), enabling[level]
		}
		out = append(out, r)
	}
	return out
}
