package flows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/fault"
	"github.com/proveto/proveto/internal/flow"
	"github.com/proveto/proveto/internal/flow/policy"
	"github.com/proveto/proveto/internal/view"
)

// Finding is a finding as a user gives it.
type Finding = flow.Finding

// ParseDecision reads the word of a decision.
func ParseDecision(s string) (flow.Decision, error) {
	if d := flow.Decision(s); slices.Contains(flow.Decisions(), d) {
		return d, nil
	}
	return "", fault.New(fault.Usage, "usage", "--decision %.40q is no decision: want approve, request_changes, reject or abstain", s).
		Hint("proveto flow advance --help")
}

// ParseFinding reads a finding of the command line:
// severity:category:file:line: message. File and line may be left empty.
func ParseFinding(s string) (Finding, error) {
	bad := func(why string) (Finding, error) {
		return Finding{}, fault.New(fault.Usage, "usage", "--finding %.80q %s: want severity:category:file:line: message", s, why).
			Hint("--finding 'block:test_gap:auth/oauth.go:41: no test for an expired token'")
	}
	parts := strings.SplitN(s, ":", 5)
	if len(parts) < 5 {
		return bad("has too few parts")
	}
	x := Finding{Severity: flow.Severity(parts[0]), Category: parts[1], File: parts[2], Message: strings.TrimSpace(parts[4])}
	if parts[3] != "" {
		n, err := strconv.Atoi(parts[3])
		if err != nil || n < 1 {
			return bad("has no line number where one belongs")
		}
		x.Line = n
	}
	return x, checkFinding(x)
}

func checkFinding(x Finding) error {
	switch {
	case !slices.Contains(flow.Severities(), x.Severity):
		return fault.New(fault.Usage, "usage", "a finding has severity %.40q: want block, warn or note", string(x.Severity))
	case !slices.Contains(policy.Categories(), policy.Category(x.Category)):
		return fault.New(fault.Usage, "usage", "a finding has category %.40q: want one of %v", x.Category, policy.Categories())
	case strings.TrimSpace(x.Message) == "":
		return fault.New(fault.Usage, flow.CodeNoteMissing, "a finding has no message")
	}
	for _, t := range append([]string{x.Message, x.File, x.Requirement, x.Detail, x.Expected, x.Actual}, append(x.Repro, x.MustKeep...)...) {
		if err := checkText("a finding", t, MaxNote); err != nil {
			return err
		}
	}
	return nil
}

// ParseFindings reads a JSON list of findings.
func ParseFindings(name string, b []byte) ([]Finding, error) {
	type given struct {
		Severity    flow.Severity `json:"severity"`
		Category    string        `json:"category"`
		Requirement string        `json:"requirement"`
		File        string        `json:"file"`
		Line        int           `json:"line"`
		Message     string        `json:"message"`
		Repro       []string      `json:"repro"`
		Expected    string        `json:"expected"`
		Actual      string        `json:"actual"`
		MustKeep    []string      `json:"must_keep"`
	}
	var list []given
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fault.Wrap(err, fault.Usage, "usage", "%s is no JSON list of findings", name).
			Hint(`[{"severity":"block","category":"defect","file":"a.go","line":3,"message":"TEXT"}]`)
	}
	var out []Finding
	for _, g := range list {
		x := Finding{
			Severity: g.Severity, Category: g.Category, Requirement: g.Requirement, File: g.File, Line: g.Line, Message: g.Message,
			Repro: g.Repro, Expected: g.Expected, Actual: g.Actual, MustKeep: g.MustKeep,
		}
		if err := checkFinding(x); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// ParseSince reads a date, a time or a duration before now; empty is no limit.
func ParseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.New(fault.Usage, "usage", "--since %.40q is no date, time or duration: want 2030-01-31, 2030-01-31T08:00:00Z or 24h", s)
}

// GateFault is why a run does not let through: nil when it is approved or
// delivered.
func GateFault(v *view.FlowRun) error {
	next := "proveto flow status " + v.Run.ID
	switch s := flow.Status(v.Run.Status); {
	case s == flow.StatusApproved || s == flow.StatusDelivered:
		return nil
	case s == flow.StatusBlocked && v.Run.Reason == flow.ReasonUnmeasured:
		return fault.New(fault.Unmeasured, "unmeasured", "run %s could not be measured", v.Run.ID).Hint("%s", next)
	case s == flow.StatusBlocked:
		return fault.New(fault.Negative, "blocked", "run %s is blocked: %s", v.Run.ID, v.Run.Reason).Hint("%s", next)
	case s == flow.StatusCancelled || s == flow.StatusExpired:
		return fault.New(fault.Refused, flow.CodeRunClosed, "run %s is %s", v.Run.ID, s).Hint("%s", next)
	default:
		return fault.New(fault.Pending, "pending", "run %s is %s, at stage %s", v.Run.ID, s, v.Run.CurrentStage).Hint("%s", next)
	}
}

// NextSteps are the commands that move a run on.
func NextSteps(v *view.FlowRun) []view.Next {
	var out []view.Next
	add := func(why, format string, args ...any) {
		out = append(out, view.Next{Why: why, Run: fmt.Sprintf("proveto flow "+format, args...)})
	}
	id := v.Run.ID
	switch flow.Status(v.Run.Status) {
	case flow.StatusApproved:
		if v.Run.Base != "" {
			add("every stage has passed", "deliver %s", id)
		} else {
			add("every stage has passed", "report %s", id)
		}
		return out
	case flow.StatusPaused:
		add("the run is paused", "resume %s --note TEXT", id)
		return out
	case flow.StatusMeasuring:
		add("gates are not measured yet", "measure %s", id)
		return out
	case flow.StatusOpen, flow.StatusWaiting:
	default:
		return out
	}
	for _, s := range v.Stages {
		if s.ID != v.Run.CurrentStage {
			continue
		}
		switch {
		case s.Role == string(policy.Planner) && len(s.Gates) > 0 && s.State != string(flow.Deciding):
			add("the planner hands in a contract", "plan new %s > plan.yaml", id)
			add("the planner hands in a contract", "plan submit %s plan.yaml", id)
		case s.Role == string(policy.Developer) && len(s.Gates) > 0:
			add("the developer hands in the work", "submit %s --snapshot .", id)
		default:
			token := ""
			if s.Role == string(policy.Developer) && v.Plan != nil {
				token = " --plan-token " + v.Plan.Token
			}
			add("stage "+s.ID+" waits for a decision", "advance %s --stage %s --actor %s --decision approve%s", id, s.ID, s.Role, token)
		}
	}
	if v.FindingsN.Blocking > 0 {
		add("findings block the run", "feedback %s", id)
	}
	return out
}
