package render

import "github.com/proveto/proveto/internal/evidence"

// mark is how an evidence word or a probe's status looks: a word and a shape
// together, so that colour is never the only sign.
type mark struct {
	Label string // for people
	Shape string
	ASCII string
	Class string // in the style sheet
	tint  tint
}

var words = map[string]mark{
	string(evidence.Proven):      {"proven", "●", "[+]", "proven", green},
	string(evidence.Refuted):     {"refuted", "▲", "[!]", "refuted", red},
	string(evidence.Stale):       {"stale", "◌", "[~]", "stale", yellow},
	string(evidence.NotMeasured): {"not measured", "○", "[ ]", "unmeasured", grey},
}

var statuses = map[string]mark{
	string(evidence.Killed):        {"killed", "●", "[+]", "proven", green},
	string(evidence.KilledByError): {"noticed by an error only", "◆", "[e]", "stale", yellow},
	string(evidence.Survived):      {"survived", "▲", "[!]", "refuted", red},
	string(evidence.TimedOut):      {"timed out", "◆", "[t]", "stale", yellow},
	string(evidence.Flaky):         {"flaky", "◆", "[?]", "stale", yellow},
	string(evidence.Invalid):       {"did not build", "◇", "[-]", "unmeasured", grey},
	string(evidence.NoCoverage):    {"not reached", "○", "[ ]", "unmeasured", grey},
	string(evidence.Waived):        {"waived", "◇", "[w]", "unmeasured", grey},
	string(evidence.PendingProbe):  {"not tried", "○", "[ ]", "unmeasured", grey},
}

// statusOrder is the order in which tallies are shown.
var statusOrder = []evidence.Status{
	evidence.Killed, evidence.Survived, evidence.KilledByError, evidence.TimedOut, evidence.Flaky,
	evidence.Invalid, evidence.NoCoverage, evidence.Waived, evidence.PendingProbe,
}

// lookup never fails: a word that this version does not know is shown as it is.
func lookup(table map[string]mark, word string) mark {
	if m, ok := table[word]; ok {
		return m
	}
	return mark{word, "○", "[ ]", "unmeasured", grey}
}

// notes are the two ways in which a probe goes unseen.
var notes = map[string]string{
	"not_infected":          "Never infected: in every call both forms gave the same value. The tests lack an input that tells them apart.",
	"infected_not_asserted": "The value was wrong while the tests ran, and no assertion looked at it.",
}

// ofConstant is the second way of a constant, which is another one in every call:
// only what was computed with it can be looked at.
const ofConstant = "The constant was another one while the tests ran, and nothing that they look at came out different."

func note(code, kind string) string {
	if code == "infected_not_asserted" && kind == string(evidence.ProbeConstant) {
		return ofConstant
	}
	if s, ok := notes[code]; ok {
		return s
	}
	return code
}
