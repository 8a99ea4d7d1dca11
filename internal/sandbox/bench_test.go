package sandbox

import (
	"syscall"
	"testing"

	"github.com/proveto/proveto/internal/evidence"
)

// BenchmarkTrue runs /bin/true in one box. Beside the time it reports the CPU of
// everything that a run takes: our process, the supervisor and the command.
func BenchmarkTrue(b *testing.B) {
	for _, bm := range []struct {
		name   string
		level  evidence.Level
		script string
	}{
		{"namespaces", evidence.Namespaces, ""},
		{"namespaces-write", evidence.Namespaces, ": > /tmp/x; : > x"},
		{"landlock", evidence.Landlock, ""},
		{"limits", evidence.LimitsOnly, ""},
	} {
		b.Run(bm.name, func(b *testing.B) { benchmarkTrue(b, bm.level, bm.script) })
	}
}

func benchmarkTrue(b *testing.B, level evidence.Level, script string) {
	src := b.TempDir()
	box, err := Open(b.Context(), Spec{Min: level, Max: level, Sources: []string{src}})
	if err != nil {
		b.Fatal(err)
	}
	c := Command{Purpose: evidence.PurposeTool, Argv: []string{"/bin/true"}, Root: "/"}
	if script != "" {
		c.Argv, c.Root = []string{"/bin/sh", "-c", script}, src
	}
	before := cpu(b)
	b.ResetTimer()
	for range b.N {
		run, out, err := box.Run(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		if run.Record().Exit.Code != 0 {
			b.Fatalf("%+v %s", run.Record().Exit, out.Stderr)
		}
	}
	b.StopTimer()
	if err := box.Close(); err != nil { // its CPU is ours only now
		b.Fatal(err)
	}
	b.ReportMetric((cpu(b)-before)*1e3/float64(b.N), "cpu-ms/op")
}

// cpu is the CPU of this process and its ended children, in seconds.
func cpu(b *testing.B) float64 {
	var sum float64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var ru syscall.Rusage
		if err := syscall.Getrusage(who, &ru); err != nil {
			b.Fatal(err)
		}
		sum += float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
	}
	return sum
}

// BenchmarkOpen opens, proves and closes a box.
func BenchmarkOpen(b *testing.B) {
	for _, level := range levels {
		b.Run(string(level), func(b *testing.B) {
			for range b.N {
				box, err := Open(b.Context(), Spec{Min: level, Max: level})
				if err != nil {
					b.Fatal(err)
				}
				if err := box.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
