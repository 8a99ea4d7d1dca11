package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/proveto/proveto/internal/view"
)

// digest makes a digest that looks like a real one.
func digest(parts ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(parts...)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

const feeSource = `package fee

// Mode is how halves are rounded.
type Mode int

const (
	Down Mode = iota
	HalfUp
)

// Cents is an amount of money.
type Cents int64

// Round rounds to whole tens.
func Round(c Cents, m Mode) Cents {
	if m == HalfUp && c%10 == 5 {
		return c + 5
	}
	return c / 10 * 10
}

// Of is the fee of an amount, at least the minimum.
func Of(amount Cents) Cents {
	fee := amount * 3 / 100
	if fee < 25 {
		fee = 25
	}
	return fee
}
`

const refundSource = `package pay

import "example.com/acme/pay/fee"

// Order is a paid order.
type Order struct {
	ID        string
	Paid, Fee fee.Cents
	Refunded  bool
}

// Refund returns what is paid back.
func Refund(o *Order) (fee.Cents, error) {
	if o.Refunded {
		return 0, ErrTwice
	}
	o.Refunded = true
	return o.Paid - o.Fee, nil
}

// Post adds an amount to the ledger.
func (l *Ledger) Post(amount fee.Cents) error {
	if amount < 0 {
		return ErrNegative
	}
	l.sum += amount
	return nil
}

// Close ends the day.
func (l *Ledger) Close() error {
	return l.db.Ping()
}
`

func oneLine(file string, line int, before, after string) string {
	return fmt.Sprintf("--- a/%s\n+++ b/%s\n@@ -%d,1 +%d,1 @@\n-%s\n+%s\n", file, file, line, line, before, after)
}

func mutant(kind, op, summary, file string, line int, before, after, status string) view.Mutant {
	return view.Mutant{
		ID: digest(file, line, op, after), Kind: kind, Operator: op, Summary: summary, File: file, Line: line,
		Column: 1 + len(before) - len(strings.TrimLeft(before, "\t")), Diff: oneLine(file, line, before, after), Status: status, Run: digest("run", file, line, after),
	}
}

func fixtureCertificate() view.Certificate {
	return view.Certificate{
		ID: digest("certificate", 1), Symbol: "go . example.com/acme/pay/fee Round().", SymbolName: "fee.Round", Test: "TestRound/half_up",
		Summary: "result replaced by c + 1", Diff: oneLine("fee/fee.go", 19, "\treturn c / 10 * 10", "\treturn c + 1"),
		File: "fee/fee_test.go", Line: 31, Message: "Round(15) = 16, want 20", Level: "namespaces", Network: "loopback",
		Snapshot: "5f1a0c9be1f5a6de1c1f7a9c55c3f2f1b8f4b0aa", Toolchain: "go1.26.8 linux/amd64", Reached: 7, Plain: true, Seq: 412, Live: true,
		Steps: []view.Step{
			{Text: "Green: the whole suite of fee on the original, in order and shuffled", Run: digest("run", "base"), MS: 412},
			{Text: "Honest runner: a planted failing assertion was seen, and the idle switch changed nothing", Run: digest("run", "plant"), MS: 96},
			{Text: "Red: TestRound/half_up on the broken copy, fee/fee_test.go:31 “Round(15) = 16, want 20”", Run: digest("run", "kill"), MS: 88},
			{Text: "Green: the same test alone on the original, in a fresh process", Run: digest("run", "control"), MS: 85},
			{Text: "Red again, by the same assertion, in a fresh process", Run: digest("run", "repeat"), MS: 87},
		},
	}
}

func fixtureSymbols() []view.Symbol {
	round := view.Symbol{
		ID: "go . example.com/acme/pay/fee Round().", Name: "fee.Round", Language: "go", Project: ".", Package: "fee", File: "fee/fee.go", Line: 15, EndLine: 20,
		Exported: true, Word: "proven", Risk: 0.34, EntryPoint: "exported API", Tests: []string{"TestRound/half_up", "TestRound/down", "TestOf"},
		Strength: view.Share{Num: 3, Den: 4}, Certificate: digest("certificate", 1), New: true,
		Mutants: []view.Mutant{
			mutant("result", "RETURN_VALUE", "result replaced by c + 1", "fee/fee.go", 19, "\treturn c / 10 * 10", "\treturn c + 1", "killed"),
			mutant("result", "RETURN_VALUE", "result replaced by 0", "fee/fee.go", 17, "\t\treturn c + 5", "\t\treturn 0", "killed"),
			mutant("condition", "LOGICAL_OPERATOR", "&& changed to ||", "fee/fee.go", 16, "\tif m == HalfUp && c%10 == 5 {", "\tif m == HalfUp || c%10 == 5 {", "survived"),
			mutant("arithmetic", "ARITHMETIC", "* changed to /", "fee/fee.go", 19, "\treturn c / 10 * 10", "\treturn c / 10 / 10", "killed"),
			mutant("arithmetic", "ARITHMETIC", "10 changed to 0", "fee/fee.go", 16, "\tif m == HalfUp && c%10 == 5 {", "\tif m == HalfUp && c%0 == 5 {", "invalid"),
		},
	}
	round.Mutants[0].Test, round.Mutants[1].Test, round.Mutants[3].Test = "TestRound/half_up", "TestRound/half_up", "TestRound/down"
	round.Mutants[2].Note = "not_infected"
	round.Mutants[4].Message = "invalid operation: division by zero"
	of := view.Symbol{
		ID: "go . example.com/acme/pay/fee Of().", Name: "fee.Of", Language: "go", Project: ".", Package: "fee", File: "fee/fee.go", Line: 23, EndLine: 29,
		Exported: true, Word: "stale", Reason: "symbol_changed", Detail: "The function was edited after it was proven.", Command: "proveto prove fee.Of", Risk: 0.41,
		Tests: []string{"TestOf"}, Strength: view.Share{Num: 1, Den: 1}, Certificate: digest("certificate", 2), Changed: true,
		Mutants: []view.Mutant{mutant("result", "RETURN_VALUE", "result negated", "fee/fee.go", 28, "\treturn fee", "\treturn -fee", "killed")},
	}
	of.Mutants[0].Test = "TestOf"
	refund := view.Symbol{
		ID: "go . example.com/acme/pay Refund().", Name: "pay.Refund", Language: "go", Project: ".", Package: "pay", File: "pay/refund.go", Line: 13, EndLine: 19,
		Exported: true, Word: "refuted", Reason: "survived", Detail: "Every result probe survived: TestRefund runs the line and checks no amount.",
		Command: "proveto why pay.Refund", Risk: 0.92, EntryPoint: "HTTP POST /refunds", Tests: []string{"TestRefund", "TestRefundTwice"},
		Strength: view.Share{Num: 0, Den: 2}, Measurement: digest("measurement", 1),
		Mutants: []view.Mutant{
			mutant("result", "RETURN_VALUE", "- changed to +", "pay/refund.go", 18, "\treturn o.Paid - o.Fee, nil", "\treturn o.Paid + o.Fee, nil", "survived"),
			mutant("result", "RETURN_VALUE", "result replaced by 0", "pay/refund.go", 18, "\treturn o.Paid - o.Fee, nil", "\treturn 0, nil", "survived"),
			mutant("condition", "CONDITION_NEGATION", "condition negated", "pay/refund.go", 14, "\tif o.Refunded {", "\tif !o.Refunded {", "killed_by_error"),
			mutant("statement", "STATEMENT_REMOVAL", "assignment removed", "pay/refund.go", 17, "\to.Refunded = true", "\t_ = o.Refunded", "waived"),
		},
	}
	refund.Mutants[0].Note, refund.Mutants[0].Values = "infected_not_asserted", []string{"1200", "1250"}
	refund.Mutants[1].Note, refund.Mutants[1].Values = "infected_not_asserted", []string{"1200", "0"}
	refund.Mutants[2].Test, refund.Mutants[2].Code, refund.Mutants[2].Message = "TestRefund", "killed_by_error", "panic: refund of a nil order"
	post := view.Symbol{
		ID: "go . example.com/acme/pay Ledger#Post().", Name: "pay.(*Ledger).Post", Language: "go", Project: ".", Package: "pay", File: "pay/refund.go", Line: 22, EndLine: 28,
		Exported: true, Word: "not_measured", Reason: "flaky", Detail: "The control run disagreed with the first: TestPost is not stable.",
		Command: "proveto prove 'pay.(*Ledger).Post'", Risk: 0.71, Tests: []string{"TestPost"}, Strength: view.Share{Num: 0, Den: 0},
		Mutants: []view.Mutant{
			mutant("result", "RETURN_VALUE", "result replaced by nil", "pay/refund.go", 24, "\t\treturn ErrNegative", "\t\treturn nil", "flaky"),
			mutant("statement", "STATEMENT_REMOVAL", "addition removed", "pay/refund.go", 26, "\tl.sum += amount", "\t_ = amount", "timeout"),
			mutant("boundary", "BOUNDARY", "< changed to <=", "pay/refund.go", 23, "\tif amount < 0 {", "\tif amount <= 0 {", "pending"),
		},
	}
	closing := view.Symbol{
		ID: "go . example.com/acme/pay Ledger#Close().", Name: "pay.(*Ledger).Close", Language: "go", Project: ".", Package: "pay", File: "pay/refund.go", Line: 31, EndLine: 33,
		Exported: true, Word: "not_measured", Reason: "database_or_network", Detail: "dial tcp 127.0.0.1:5432: connection refused", Risk: 0.22,
		Command: "proveto prove pay/store",
	}
	hostile := view.Symbol{
		ID: "go . example.com/acme/pay/export \u202eCSV().", Name: "export.<b>CSV</b>\u202e", Language: "go", Project: ".", Package: "export", File: "export/csv.go", Line: 9, EndLine: 30,
		Word: "not_measured", Reason: "no_coverage", Detail: "No test reaches it.", Command: "proveto start --deterministic --only export", Risk: 0.12,
		Mutants: []view.Mutant{mutant("result", "RETURN_VALUE", "result replaced by </script>\x1b[31m", "export/csv.go", 12, "\treturn s", "\treturn \"\"", "no_coverage")},
	}
	return []view.Symbol{round, of, refund, post, closing, hostile}
}

// fixture is a result with every word, status and section in it.
func fixture() view.Start {
	stale := fixtureCertificate()
	stale.ID, stale.Symbol, stale.SymbolName, stale.Test = digest("certificate", 2), "go . example.com/acme/pay/fee Of().", "fee.Of", "TestOf"
	stale.Summary, stale.File, stale.Line, stale.Message = "result negated", "fee/fee_test.go", 44, "Of(1000) = -30, want 30"
	stale.Seq, stale.Live, stale.Plain, stale.StaleCauses = 371, false, false, []string{"fee.Of (fee/fee.go:23)"}
	stale.Steps = stale.Steps[:1:1]
	symbols := fixtureSymbols()
	reused := time.Date(2026, 11, 30, 15, 58, 0, 0, time.UTC)
	return view.Start{
		Run: "01JDYQ2V7M8T3N5P9R1S7KQXM2", Started: time.Date(2026, 11, 30, 16, 2, 9, 0, time.UTC), TookMS: 52_140, FirstProofMS: 12_410,
		ReusedAt: &reused, ReusedHead: &view.Head{Seq: 411, Root: digest("root", 411)},
		Isolation: "namespaces", Network: "loopback", Toolchains: []string{"go1.26.8 linux/amd64"},
		Counts:   view.Counts{Proven: 1, Refuted: 1, Stale: 1, NotMeasured: 3, Total: 6},
		BeforeIs: &view.Earlier{Run: "01JDYQ2V7M8T3N5P9R1S7KQXM1", Started: time.Date(2026, 11, 29, 9, 30, 0, 0, time.UTC), Branch: "main", Commit: "0123456789abcdef0123456789abcdef01234567", Tree: "4b825dc642cb6eb9a060e54bf8d69288fbee4904"},
		Before:   &view.Counts{Proven: 1, Refuted: 2, Stale: 0, NotMeasured: 3, Total: 6},
		Suite: view.Suite{
			Tests: 31, Passed: 28, Skipped: 1, Packages: 3,
			Red:   []view.TestNote{{Test: "TestExportEmpty", Package: "export", File: "export/csv_test.go", Line: 18, Note: "Rows() = nil, want []"}},
			Flaky: []view.TestNote{{Test: "TestPost", Package: "pay", File: "pay/ledger_test.go", Line: 52, Note: "green in order, red when shuffled (seed 7)"}},
		},
		Symbols: symbols,
		Packages: []view.Package{
			{Name: "pay", Dir: "pay", Counts: view.Counts{Refuted: 1, NotMeasured: 2, Total: 3}},
			{Name: "fee", Dir: "fee", Counts: view.Counts{Proven: 1, Stale: 1, Total: 2}},
			{Name: "export", Dir: "export", Counts: view.Counts{NotMeasured: 1, Total: 1}},
		},
		Tests: []view.Test{
			{Name: "TestRound/half_up", Package: "fee", File: "fee/fee_test.go", Line: 24},
			{Name: "TestRound/down", Package: "fee", File: "fee/fee_test.go", Line: 24},
			{Name: "TestOf", Package: "fee", File: "fee/fee_test.go", Line: 40},
			{Name: "TestRefund", Package: "pay", File: "pay/refund_test.go", Line: 11},
			{Name: "TestRefundTwice", Package: "pay", File: "pay/refund_test.go", Line: 29},
			{Name: "TestPost", Package: "pay", File: "pay/ledger_test.go", Line: 48},
		},
		Gaps: []view.Gap{
			{
				Symbol: symbols[2].ID, Name: "pay.Refund", Word: "refuted", Reason: "survived", File: "pay/refund.go", Line: 18, Risk: 0.92,
				Why:  "The refunded amount can be wrong and every test stays green. TestRefund runs this line, gets 1250 instead of 1200, and never looks at it.",
				Diff: symbols[2].Mutants[0].Diff, Commands: []string{"proveto why pay.Refund", "proveto start --only pay.Refund"},
			},
			{
				Symbol: symbols[1].ID, Name: "fee.Of", Word: "stale", Reason: "symbol_changed", File: "fee/fee.go", Line: 23, Risk: 0.41,
				Why: "It was proven before the last edit of fee/fee.go; nothing has vouched for it since.", Commands: []string{"proveto prove fee.Of"},
			},
		},
		Unmeasured: []view.Unmeasured{
			{Reason: "flaky", Detail: "a test that reaches it is not stable", Count: 1, Command: "proveto prove 'pay.(*Ledger).Post'", Symbols: []string{symbols[3].ID}},
			{Reason: "database_or_network", Detail: "database needed: dial tcp 127.0.0.1:5432: connection refused", Count: 1, Command: "proveto prove pay/store", Symbols: []string{symbols[4].ID}},
			{Reason: "no_coverage", Detail: "no test reaches it", Count: 1, Command: "proveto start --deterministic --only export", Symbols: []string{symbols[5].ID}},
		},
		Excluded: []view.Excluded{
			{Name: "pay.init", File: "pay/pay.go", Line: 12, Reason: "runs before any test can switch a probe on"},
			{Name: "pb.(*Refund).Reset", File: "pb/refund.pb.go", Line: 40, Reason: "generated code"},
		},
		Certificates: []view.Certificate{fixtureCertificate(), stale},
		Attempted:    4, ProvenNow: 1, RefutedNow: 1,
		Probes: map[string]int{"killed": 4, "survived": 3, "killed_by_error": 1, "flaky": 1, "timeout": 1, "invalid": 1, "no_coverage": 1, "waived": 1, "pending": 1},
		Scope:  "everything",
		Gate: view.Gate{
			Asked: true, Base: "main", Counts: view.Counts{Proven: 1, Refuted: 1, NotMeasured: 0, Total: 2}, MinProven: 0.8, MaxUnproven: 0.2,
			Failures: []string{"1 of 2 changed behaviours is proven; at least 80 % must be"}, Unguarded: []string{"fee.Of"},
		},
		Artifacts: []view.Artifact{{Kind: "html", Path: "/home/ada/.local/state/proveto/reports/pay/report.html", Digest: digest("html"), Bytes: 84_211}},
		Says:      view.Says,
		Sources:   map[string][]string{"fee/fee.go": strings.Split(feeSource, "\n"), "pay/refund.go": strings.Split(refundSource, "\n")},
	}
}

func fixtureMeta() Meta {
	return Meta{
		Version:  "0.4.0",
		Subject:  view.Subject{Repository: "acme/pay", Dir: "/home/ada/pay", Branch: "main", Commit: "3f9c2ab4d1e05b6a7c8d9e0f1a2b3c4d5e6f7a8b", Tree: "5f1a0c9be1f5a6de1c1f7a9c55c3f2f1b8f4b0aa", Dirty: true, Changed: 2},
		Head:     &view.Head{Seq: 418, Root: digest("root", 418)},
		Warnings: []view.Warning{{Code: "flaky_tests", Message: "1 test is not stable and vouches for nothing"}},
	}
}
