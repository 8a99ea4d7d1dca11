package view

import "time"

// Status is the state of a repository at a glance. Absent parts are left out by
// every face.
type Status struct {
	Subject   Subject  `json:"subject"`
	Head      *Head    `json:"head,omitempty"`
	Isolation string   `json:"isolation,omitempty"`
	Measured  bool     `json:"measured"`           // false: there is no evidence yet
	Borrowed  string   `json:"borrowed,omitempty"` // start has never run here: the checkout of the same module where the evidence was measured
	Counts    Counts   `json:"counts"`
	Since     []Change `json:"since,omitempty"`
	Base      string   `json:"base,omitempty"` // what Since compares to
	Waiting   []Line   `json:"waiting,omitempty"`
	Running   []Line   `json:"running,omitempty"`
	Worst     *Gap     `json:"worst,omitempty"`
	Gaps      int      `json:"gaps"`
	Found     []Found  `json:"found,omitempty"` // projects, when nothing was measured yet
	Missing   []Check  `json:"missing,omitempty"`
	Next      Next     `json:"next"`
}

// Line is one thing that waits or runs, with the command that shows it.
type Line struct {
	What string `json:"what"`
	Run  string `json:"run,omitempty"`
}

// Found is a project that was detected, before anything ran.
type Found struct {
	Language  string `json:"language"`
	Dir       string `json:"dir"`
	Runner    string `json:"runner"`
	TestFiles int    `json:"test_files"`
}

// Why is the chain behind one symbol's evidence word: its certificate, or its
// probes, or what is missing.
type Why struct {
	Symbol      Symbol       `json:"symbol"`
	Certificate *Certificate `json:"certificate,omitempty"`
	Next        []Next       `json:"next"`
}

// Gaps is the ranked list of what a bug could break unseen.
type Gaps struct {
	Scope string `json:"scope"`
	Total int    `json:"total"` // before the limit
	Gaps  []Gap  `json:"gaps"`
}

// The states of a check of this machine.
const (
	CheckOK   = "ok"
	CheckWarn = "warn"
	CheckFail = "fail"
)

// Check is one line of the doctor.
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok, warn, fail
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // a command
}

// Doctor is what this machine can do.
type Doctor struct {
	Checks []Check `json:"checks"`
	Failed int     `json:"failed"`
	Warned int     `json:"warned"`
}

// Progress is one step of a running job.
type Progress struct {
	Type    string        `json:"type"` // progress
	Phase   string        `json:"phase"`
	Done    int           `json:"done"`
	Total   int           `json:"total"` // 0: not known yet
	Subject string        `json:"subject,omitempty"`
	Left    time.Duration `json:"-"` // of the budget; 0: no budget
}
