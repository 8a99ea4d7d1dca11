// Package view holds the read models that every face shows: one value feeds the
// terminal text, the JSON answer, the page and the report.
//
// The values are plain data, already counted, sorted and worded; renderers lay
// them out and decide nothing. JSON names are snake_case and additive within a
// schema version; sizes end in _bytes, durations in _ms, times are RFC 3339.
package view

import (
	"encoding/json"
	"time"
)

// Says is the one sentence that every report carries: what proven does not say.
const Says = "Proven says that one named test fails by its own assertion when this behaviour is changed; it does not say that the behaviour is right, nor that every way of breaking it is noticed."

// Subject is what an answer is about.
type Subject struct {
	Repository string `json:"repository"`
	Dir        string `json:"dir"`
	Branch     string `json:"branch,omitempty"`
	Commit     string `json:"commit,omitempty"`
	Tree       string `json:"tree,omitempty"`
	Dirty      bool   `json:"dirty"`
	Changed    int    `json:"changed_files,omitempty"`
}

// Head is the ledger's head.
type Head struct {
	Seq  int64  `json:"seq"`
	Root string `json:"root"`
}

// LedgerHead is the head with what another machine needs to check it.
type LedgerHead struct {
	Head
	Ledger      string `json:"ledger"`       // id
	VerifierKey string `json:"verifier_key"` // of the engine that signs
}

// Warning is something that did not stop the work.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Next is a command that gets on.
type Next struct {
	Why string `json:"why"`
	Run string `json:"run"`
}

// Answer is the JSON envelope: one shape for success and refusal.
type Answer struct {
	Schema   string    `json:"schema"`
	OK       bool      `json:"ok"`
	Code     string    `json:"code"`
	Exit     int       `json:"exit"`
	Message  string    `json:"message"`
	Subject  *Subject  `json:"subject,omitempty"`
	Head     *Head     `json:"head,omitempty"`
	Data     any       `json:"data"`
	Warnings []Warning `json:"warnings"`
	Hints    []string  `json:"hints"`
	Next     []Next    `json:"next"`
	Version  string    `json:"version"`
}

// Counts are the four evidence words, never merged, with their total.
type Counts struct {
	Proven      int `json:"proven"`
	Refuted     int `json:"refuted"`
	Stale       int `json:"stale"`
	NotMeasured int `json:"not_measured"`
	Total       int `json:"total"`
}

// Share is a fraction, shown as a fraction.
type Share struct {
	Num int `json:"num"`
	Den int `json:"den"`
}

// Symbol is one behaviour with its evidence.
type Symbol struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Language    string   `json:"language"`
	Project     string   `json:"project"`
	Package     string   `json:"package"`
	File        string   `json:"file"`
	Line        int      `json:"line"`
	EndLine     int      `json:"end_line"`
	Exported    bool     `json:"exported"`
	Word        string   `json:"word"`              // proven, refuted, stale, not_measured
	Reason      string   `json:"reason,omitempty"`  // always set for stale and not_measured
	Detail      string   `json:"detail,omitempty"`  // one sentence for people
	Blocked     string   `json:"blocked,omitempty"` // of a stale one: the reason for which it could not be measured again
	Command     string   `json:"command,omitempty"`
	Risk        float64  `json:"risk"` // 0 to 1
	EntryPoint  string   `json:"entry_point,omitempty"`
	Tests       []string `json:"tests,omitempty"` // that were measured to reach it, most promising first
	Strength    Share    `json:"strength"`        // killed of valid probes
	Certificate string   `json:"certificate,omitempty"`
	Measurement string   `json:"measurement,omitempty"`
	New         bool     `json:"new,omitempty"` // measured by this invocation
	Changed     bool     `json:"changed,omitempty"`
	Mutants     []Mutant `json:"mutants,omitempty"`
}

// Mutant is one probe of a symbol and how it ended.
type Mutant struct {
	ID       string   `json:"id"` // digest
	Kind     string   `json:"kind"`
	Operator string   `json:"operator"`
	Summary  string   `json:"summary"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column,omitempty"`
	Diff     string   `json:"diff"`
	Status   string   `json:"status"`
	Code     string   `json:"code,omitempty"`
	Test     string   `json:"test,omitempty"` // that noticed
	Message  string   `json:"message,omitempty"`
	Note     string   `json:"note,omitempty"`   // not_infected, infected_not_asserted
	Hint     string   `json:"hint,omitempty"`   // of a survivor: which value would tell it apart, where the line shows it
	Values   []string `json:"values,omitempty"` // original, changed: seen while the tests stayed green
	Waived   string   `json:"waived,omitempty"` // of a survivor: it is waived since
	Run      string   `json:"run,omitempty"`
}

// Certificate is a certificate laid out for people.
type Certificate struct {
	ID          string   `json:"id"`
	Symbol      string   `json:"symbol"`
	SymbolName  string   `json:"symbol_name"`
	Test        string   `json:"test"`
	Summary     string   `json:"summary"` // of the probe
	Diff        string   `json:"diff"`
	File        string   `json:"file"` // of the assertion that failed
	Line        int      `json:"line"`
	Message     string   `json:"message"`
	Level       string   `json:"level"`
	Network     string   `json:"network"`
	Snapshot    string   `json:"snapshot"`
	Toolchain   string   `json:"toolchain"`
	Reached     int      `json:"reached"` // project symbols that the test executed
	Plain       bool     `json:"plain"`   // confirmed on a build without a switch
	Seq         int64    `json:"seq"`
	Steps       []Step   `json:"steps"`
	Live        bool     `json:"live"`
	Newer       string   `json:"newer,omitempty"` // id of the newer certificate that is shown for the behaviour in its place
	NewerSeq    int64    `json:"newer_seq,omitempty"`
	StaleCauses []string `json:"stale_causes,omitempty"` // what changed since
}

// Step is one line of a certificate's chain, with the run behind it.
type Step struct {
	Text string `json:"text"`
	Run  string `json:"run,omitempty"`
	MS   int64  `json:"ms,omitempty"`
}

// Gap is a behaviour that a bug could break unseen, worst first.
type Gap struct {
	Symbol   string   `json:"symbol"` // id
	Name     string   `json:"name"`
	Word     string   `json:"word"`
	Reason   string   `json:"reason"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Risk     float64  `json:"risk"`
	Why      string   `json:"why"` // the sentence a person reads
	Diff     string   `json:"diff,omitempty"`
	Commands []string `json:"commands"`
}

// Unmeasured groups what could not be measured, most frequent first.
type Unmeasured struct {
	Reason  string   `json:"reason"`
	Detail  string   `json:"detail"`
	Count   int      `json:"count"`
	Command string   `json:"command,omitempty"`
	Symbols []string `json:"symbols"` // ids
}

// Package is one row of the evidence map.
type Package struct {
	Name   string `json:"name"`
	Dir    string `json:"dir"`
	Counts Counts `json:"counts"`
}

// Suite is what the baselines showed about the tests.
type Suite struct {
	Tests    int        `json:"tests"` // leaf tests that ran
	Passed   int        `json:"passed"`
	Skipped  int        `json:"skipped"`
	Red      []TestNote `json:"red"`
	Flaky    []TestNote `json:"flaky"`
	Packages int        `json:"packages"`
}

// Test says where a test is. Names repeat between packages.
type Test struct {
	Name    string `json:"name"` // full: TestRound/half_up
	Package string `json:"package"`
	File    string `json:"file"`
	Line    int    `json:"line"`
}

// TestNote is a test with what is wrong with it.
type TestNote struct {
	Test    string `json:"test"`
	Package string `json:"package"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Note    string `json:"note"`
	Command string `json:"command,omitempty"` // that shows it
}

// Excluded is code that is never a target, with the reason.
type Excluded struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Reason string `json:"reason"`
	// Changed says that it holds code that no probe can change, and is in the
	// changed scope: a gate counts it as not measured.
	Changed bool `json:"changed,omitempty"`
}

// Broken is something that could not be read or built, with its place: a file, a
// package, a whole project.
type Broken struct {
	Code       string `json:"code"` // build_failed, dependency_missing …
	File       string `json:"file"`
	Line       int    `json:"line,omitempty"`
	Text       string `json:"text"`              // with the place
	Command    string `json:"command,omitempty"` // shows or mends it
	Behaviours int    `json:"behaviours"`        // that are not measured for it, as far as they are known
	Changed    bool   `json:"changed,omitempty"` // the change did it, or is in it
}

// Artifact is a file that was really written.
type Artifact struct {
	Kind   string `json:"kind"` // html, md, json, mutation
	Path   string `json:"path"`
	Digest string `json:"digest"`
	Bytes  int64  `json:"size_bytes"`
}

// Gate is the verdict of --gate over the changed scope.
type Gate struct {
	Asked       bool     `json:"asked"`
	Passed      bool     `json:"passed"`
	Base        string   `json:"base,omitempty"`
	Changed     bool     `json:"changed,omitempty"` // the scope is what changed; otherwise everything that was asked for
	Counts      Counts   `json:"counts"`
	Failures    []string `json:"failures"`
	Unguarded   []string `json:"unguarded"` // names of symbols in scope that are not proven
	MinProven   float64  `json:"min_proven"`
	MaxRefuted  int      `json:"max_refuted"`
	MaxUnproven float64  `json:"max_not_measured"`
}

// Earlier names the result that another one is compared with.
type Earlier struct {
	Run     string    `json:"run"`
	Started time.Time `json:"started"`
	Branch  string    `json:"branch,omitempty"`
	Commit  string    `json:"commit,omitempty"`
	Tree    string    `json:"tree"`
	Dirty   bool      `json:"dirty"`
}

// Start is the result of the whole prove lane.
type Start struct {
	Run          string         `json:"run"` // id of this invocation
	Started      time.Time      `json:"started"`
	TookMS       int64          `json:"took_ms"`
	FirstProofMS int64          `json:"first_proof_ms,omitempty"` // absent when nothing was newly proven
	Reused       bool           `json:"reused"`
	ReusedHead   *Head          `json:"reused_head,omitempty"` // the head whose result was reused
	ReusedAt     *time.Time     `json:"reused_at,omitempty"`
	Isolation    string         `json:"isolation"`
	Network      string         `json:"network"`
	Toolchains   []string       `json:"toolchains"`
	Counts       Counts         `json:"counts"`
	Before       *Counts        `json:"before,omitempty"` // of the last result about everything on the same branch
	BeforeIs     *Earlier       `json:"before_is,omitempty"`
	Suite        Suite          `json:"suite"`
	Symbols      []Symbol       `json:"symbols"`
	Packages     []Package      `json:"packages"`
	Tests        []Test         `json:"tests"` // that reached or noticed something
	Gaps         []Gap          `json:"gaps"`
	Unmeasured   []Unmeasured   `json:"unmeasured"`
	Excluded     []Excluded     `json:"excluded"`
	Broken       []Broken       `json:"broken,omitempty"` // what could not be read or built
	Certificates []Certificate  `json:"certificates"`
	Attempted    int            `json:"attempted"` // targets on which a probe ran
	ProvenNow    int            `json:"proven_now"`
	RefutedNow   int            `json:"refuted_now"`
	Probes       map[string]int `json:"probes"` // by status
	SwitchedOff  []string       `json:"switched_off"`
	Scope        string         `json:"scope"`            // everything, changed since main …
	Narrow       bool           `json:"narrow,omitempty"` // only Scope was asked for; the rest is shown as it was known before
	Gate         Gate           `json:"gate"`
	Artifacts    []Artifact     `json:"artifacts"`
	Says         string         `json:"says"`
	// Sources are the lines of the files that symbols are in, for the report.
	Sources map[string][]string `json:"-"`
}

// Version is what this build is.
type Version struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit,omitempty"`
	Modified bool     `json:"modified,omitempty"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	Schemas  []string `json:"schemas"`
}

// Reports are the files that were written.
type Reports struct {
	Artifacts []Artifact `json:"artifacts"`
}

// Sentence is an answer that is one sentence, with its facts.
type Sentence struct {
	Text  string         `json:"text"`
	Facts map[string]any `json:"facts"`
}

// Verified is what a verification found.
type Verified struct {
	Text        string        `json:"text"`
	ID          string        `json:"id"`
	Kind        string        `json:"kind"` // certificate, gate, measurement, export, flow_run
	Sound       bool          `json:"sound"`
	Signed      bool          `json:"signed"` // an exported statement carried a good signature
	Signer      string        `json:"signer,omitempty"`
	Trusted     bool          `json:"trusted"`         // the signer was named by the user; otherwise the file names its own
	Check       string        `json:"check,omitempty"` // the command that makes its runs again
	Certificate Certificate   `json:"certificate"`
	Reruns      []Rerun       `json:"reruns,omitempty"`
	Run         *FlowVerified `json:"run,omitempty"` // what an attestation says
}

// Rerun is one repetition of a certificate on this machine.
type Rerun struct {
	Agrees bool   `json:"agrees"`
	Code   string `json:"code"`
	Text   string `json:"text"`
	ID     string `json:"id,omitempty"` // of the certificate that the repetition earned
}

// LedgerVerified is what a verification of the whole ledger found.
type LedgerVerified struct {
	Text     string   `json:"text"`
	Sound    bool     `json:"sound"`
	Head     *Head    `json:"head,omitempty"`
	Entries  int64    `json:"entries"`
	Derived  int64    `json:"derived"` // certificates and measurements derived again
	Blobs    int64    `json:"blobs"`
	Anchored string   `json:"anchored"`  // what the head was compared with outside this store; "no outside anchor" when nothing was
	FirstBad int64    `json:"first_bad"` // -1 when nothing is
	Problems []string `json:"problems"`
}

// LogEntry is one line of the ledger.
type LogEntry struct {
	Seq     int64           `json:"seq"`
	Time    time.Time       `json:"time"`
	Kind    string          `json:"kind"`
	ID      string          `json:"id,omitempty"`
	Summary string          `json:"summary"`
	Newer   int64           `json:"newer,omitempty"` // of a certificate: the entry of the newest about the same behaviour
	Leaf    string          `json:"leaf"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// Log is a page of the ledger, newest first.
type Log struct {
	Total   int64      `json:"total"`          // entries of the whole ledger
	Next    int64      `json:"next,omitempty"` // where the list goes on; absent at its end
	Entries []LogEntry `json:"entries"`
}

// Export is a signed statement.
type Export struct {
	Certificate string          `json:"certificate"`
	Envelope    json.RawMessage `json:"envelope"`
}

// ConfigKey is one key of the configuration with its origin.
type ConfigKey struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
}
