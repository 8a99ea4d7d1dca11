package evidence

import (
	"encoding/json"
	"fmt"
	"time"
)

// RunSchema names the stored form of a run.
const RunSchema = "proveto/run/v1"

// Purpose says what a run was for.
type Purpose string

// The purposes. Baseline runs are made on the original with the switch set to
// nothing; a null run has the switch on and nothing changed; a planted run
// carries an assertion that must fail.
const (
	PurposeTool     Purpose = "tool"     // a helper or a tool of the toolchain: scan, version
	PurposeBuild    Purpose = "build"    // compile or load
	PurposeBaseline Purpose = "baseline" // the suite on the original
	PurposeControl  Purpose = "control"  // chosen tests on the original, beside a probe
	PurposeNull     Purpose = "null"     // the switch on, nothing changed
	PurposePlanted  Purpose = "planted"  // a failing assertion planted in a chosen test
	PurposeProbe    Purpose = "probe"    // chosen tests on a sabotaged copy
	PurposePlain    Purpose = "plain"    // chosen tests on a plainly mutated build, without a switch
)

// Level is how strongly a run was isolated. Order: namespaces > landlock > limits.
type Level string

// The levels, strongest first.
const (
	Namespaces Level = "namespaces"
	Landlock   Level = "landlock"
	LimitsOnly Level = "limits"
)

// Rank orders levels: higher is stronger, unknown is 0.
func (l Level) Rank() int {
	switch l {
	case Namespaces:
		return 3
	case Landlock:
		return 2
	case LimitsOnly:
		return 1
	}
	return 0
}

// Network is what a run could reach.
type Network string

// The networks a run can be proven to have. Host is what the user opened.
const (
	Loopback Network = "loopback" // a private loopback interface and nothing else
	Closed   Network = "closed"   // no TCP at all
	Open     Network = "open"     // not restricted
)

// Isolation is the level proven, never the one asked for.
type Isolation struct {
	Level   Level   `json:"level"`
	Network Network `json:"network"`
}

// Limits bound one run. Zero means no limit of that kind.
type Limits struct {
	CPU         time.Duration `json:"cpu_ns,omitempty"`  // of the whole process tree
	Wall        time.Duration `json:"wall_ns,omitempty"` // backstop for those that neither compute nor end
	Idle        time.Duration `json:"idle_ns,omitempty"` // in which the tree uses no CPU at all: a deadlock or a sleep
	MemoryBytes int64         `json:"memory_bytes,omitempty"`
	OutputBytes int64         `json:"output_bytes,omitempty"` // per stream; the rest is counted and dropped
	Processes   int           `json:"processes,omitempty"`
}

// Stop says which limit of ours ended a run; empty when none did.
type Stop string

// The reasons for which we end a run.
const (
	StopCPU       Stop = "cpu_limit"
	StopWall      Stop = "wall_limit"
	StopIdle      Stop = "idle_limit"
	StopMemory    Stop = "memory_limit"
	StopOutput    Stop = "output_limit"
	StopProcesses Stop = "process_limit"
	StopCancelled Stop = "cancelled"
)

// Timeout tells whether the limit was one of time.
func (s Stop) Timeout() bool { return s == StopCPU || s == StopWall || s == StopIdle }

// Exit is how the process ended.
type Exit struct {
	Code    int    `json:"code"`             // -1 when ended by a signal or never started
	Signal  string `json:"signal,omitempty"` // SIGKILL
	Stopped Stop   `json:"stopped,omitempty"`
}

// Output is one captured stream; the bytes are a blob.
type Output struct {
	Digest    Digest `json:"digest,omitempty"`
	Bytes     int64  `json:"bytes"` // as written by the process, also what was dropped
	Truncated bool   `json:"truncated,omitempty"`
}

// ReportState says whether the results descriptor can be believed.
type ReportState string

// The states of a report.
const (
	ReportNone       ReportState = "none"       // the command was given no descriptor
	ReportComplete   ReportState = "complete"   // every frame in order and authentic, and the end mark
	ReportIncomplete ReportState = "incomplete" // no end mark: the process left early
	ReportTampered   ReportState = "tampered"   // a frame with a wrong sequence number or authentication code
)

// RunRecord is the stored form of a run. Paths are relative to the checkout,
// times are UTC.
type RunRecord struct {
	Schema    string      `json:"schema"`
	Purpose   Purpose     `json:"purpose"`
	Snapshot  Tree        `json:"snapshot,omitempty"`
	Argv      []string    `json:"argv"`
	Dir       string      `json:"dir"`
	Env       Digest      `json:"env"`                // digest of the whole environment given
	Artifact  Digest      `json:"artifact,omitempty"` // the executable that ran, when it was built for this run
	Probe     Digest      `json:"probe,omitempty"`    // the sabotage that was on; absent on the original
	Tests     []string    `json:"tests,omitempty"`    // tests selected; absent: all
	Planted   string      `json:"planted,omitempty"`  // the test that carried a planted failing assertion
	Limits    Limits      `json:"limits"`
	Isolation Isolation   `json:"isolation"`
	Started   time.Time   `json:"started"`
	WallNS    int64       `json:"wall_ns"`
	CPUNS     int64       `json:"cpu_ns"` // user and system, of the whole process tree
	MaxRSS    int64       `json:"max_rss_bytes"`
	Exit      Exit        `json:"exit"`
	Stdout    Output      `json:"stdout"`
	Stderr    Output      `json:"stderr"`
	Report    ReportState `json:"report"`
	Events    Digest      `json:"events,omitempty"`    // blob: JSON array of events; absent when there are none
	Survivors int         `json:"survivors,omitempty"` // processes that outlived the command and were ended
	Nonce     string      `json:"nonce"`               // random: no two runs share a digest
}

// Run is what one process did, as recorded by our runner. Its fields are
// unexported: only [RecordRun] and [LoadRun] make one.
type Run struct {
	rec    RunRecord
	events []Event
	body   []byte
	digest Digest
}

// RecordRun seals a run that has just ended. Only package sandbox calls it.
func RecordRun(rec RunRecord, events []Event) (Run, error) {
	rec.Schema = RunSchema
	rec.Events = ""
	rec.Started = rec.Started.UTC()
	if len(events) > 0 {
		b, err := EncodeEvents(events)
		if err != nil {
			return Run{}, err
		}
		rec.Events = DigestOf(b)
	}
	body, err := Canonical(rec)
	if err != nil {
		return Run{}, err
	}
	return Run{rec: rec, events: events, body: body, digest: DigestOf(body)}, nil
}

// LoadRun reads a stored run back. Body and events must have the digests that
// the ledger and the run record name; anything else is an error. Only package
// ledger calls it.
func LoadRun(want Digest, body, events []byte) (Run, error) {
	if got := DigestOf(body); got != want {
		return Run{}, fmt.Errorf("run %s: its bytes have digest %s", want.Short(), got.Short())
	}
	var rec RunRecord
	if err := json.Unmarshal(body, &rec); err != nil {
		return Run{}, fmt.Errorf("run %s: %w", want.Short(), err)
	}
	if rec.Schema != RunSchema {
		return Run{}, fmt.Errorf("run %s: unknown schema %q", want.Short(), rec.Schema)
	}
	var evs []Event
	if rec.Events != "" {
		if got := DigestOf(events); got != rec.Events {
			return Run{}, fmt.Errorf("run %s: its events have digest %s, want %s", want.Short(), got.Short(), rec.Events.Short())
		}
		var err error
		if evs, err = DecodeEvents(events); err != nil {
			return Run{}, fmt.Errorf("run %s: %w", want.Short(), err)
		}
	}
	return Run{rec: rec, events: evs, body: body, digest: want}, nil
}

// Digest identifies the run.
func (r Run) Digest() Digest { return r.digest }

// Record is a copy of the stored form.
func (r Run) Record() RunRecord { return r.rec }

// Events are the per-test events in the order they arrived. Do not change them.
func (r Run) Events() []Event { return r.events }

// Body is the canonical JSON of the record. Do not change it.
func (r Run) Body() []byte { return r.body }

// IsZero tells a run that was never made.
func (r Run) IsZero() bool { return r.digest == "" }
