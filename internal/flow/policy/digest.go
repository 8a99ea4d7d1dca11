package policy

import (
	"slices"

	"github.com/proveto/proveto/internal/evidence"
	"github.com/proveto/proveto/internal/fault"
)

// Digest is over the canonical JSON of the resolved policy, its name included.
func (p Policy) Digest() (evidence.Digest, error) {
	b, err := p.MarshalJSON()
	if err != nil {
		return "", err
	}
	return evidence.DigestOf(b), nil
}

// GateDigest names one gate exactly: its name, all its values (those of its
// grader or command included), and the versions of what it runs with: tools,
// driver, probe set, the tree of a grader or of a patch. The order of the
// versions does not matter.
func (p Policy) GateDigest(name string, versions ...string) (evidence.Digest, error) {
	g, ok := p.Gate(name)
	if !ok {
		return "", fault.New(fault.Usage, CodeInvalid, "policy %s has no gate %s", p.Name, name)
	}
	doc := map[string]any{"schema": "proveto/gate-digest/v1", "gate": name, "kind": string(g.Kind)}
	switch g.Kind {
	case GateGrader:
		x, _ := p.Grader(name)
		doc["values"] = plainJSON(graderShape.show(&x))
	case GateCommand:
		x, _ := p.Command(name)
		doc["values"] = plainJSON(commandShape.show(&x))
	default:
		doc["values"] = plainJSON(gateShape.show(&g))
	}
	versions = slices.Clone(versions)
	slices.Sort(versions)
	if versions = slices.Compact(versions); len(versions) > 0 {
		doc["versions"] = versions
	}
	b, err := evidence.Canonical(doc)
	if err != nil {
		return "", err
	}
	return evidence.DigestOf(b), nil
}
