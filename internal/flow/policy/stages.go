package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/proveto/proveto/internal/strictyaml"
)

var stageShape = shape[Stage]{
	text("id", fixed, func(s *Stage) *string { return &s.ID }, idWant),
	word("role", fixed, func(s *Stage) *Role { return &s.Role }, Roles()...),
	list("needs", grow, func(s *Stage) *[]string { return &s.Needs }, idWant),
	list("gates", grow, func(s *Stage) *[]string { return &s.Gates }, gateName),
	{
		name: "decide",
		read: func(r *reader, s *Stage, n strictyaml.Node, path string) error {
			return readDecide(r, &s.Decide, n, path)
		},
		show: func(s *Stage) any { return showDecide(s.Decide) },
		loosens: func(l *loosened, path string, a, b *Stage) {
			loosensDecide(l, path, a.Decide, b.Decide)
		},
	},
	{
		name: "agent_producer",
		read: func(r *reader, s *Stage, n strictyaml.Node, path string) error {
			var d Decide
			s.AgentProducer = &d
			return readDecide(r, &d, n, path)
		},
		show: func(s *Stage) any {
			if s.AgentProducer == nil {
				return nil
			}
			return showDecide(*s.AgentProducer)
		},
		loosens: func(l *loosened, path string, a, b *Stage) {
			if a.AgentProducer != nil || b.AgentProducer != nil { // what then really decides
				loosensDecide(l, path, a.forAgents(), b.forAgents())
			}
		},
	},
}

func (s Stage) forAgents() Decide {
	if s.AgentProducer != nil {
		return *s.AgentProducer
	}
	return s.Decide
}

// readDecide reads the word engine, or how many must approve.
func readDecide(r *reader, d *Decide, n strictyaml.Node, path string) error {
	*d = Decide{}
	if n.IsMapping() {
		d.Note = NoteOptional
		return decideShape.read(r, d, n, path)
	}
	if s, _ := n.Text(); s != "engine" {
		return wants(n, path, "engine or {approvals: 1, humans: 1, note: optional}")
	}
	d.Engine = true
	return nil
}

func showDecide(d Decide) any {
	if d.Engine {
		return "engine"
	}
	return decideShape.show(&d)
}

// loosensDecide compares two rules. Engine against persons is no order: either
// may let through what the other would not.
func loosensDecide(l *loosened, path string, a, b Decide) {
	if a.Engine != b.Engine {
		l.add(path, showDecide(a), showDecide(b))
		return
	}
	decideShape.loosens(l, path, &a, &b)
}

// stagesField is the list of stages. A file that has one replaces all stages.
var stagesField = field[Policy]{
	name: "stages", dir: grow,
	read: func(r *reader, p *Policy, n strictyaml.Node, path string) error {
		items, ok := n.Items()
		if !ok {
			return wants(n, path, "a list of stages")
		}
		p.Stages = make([]Stage, 0, len(items))
		for i, item := range items {
			var s Stage
			at := fmt.Sprintf("%s[%d]", path, i)
			r.note(at, item)
			if err := stageShape.read(r, &s, item, at); err != nil {
				return err
			}
			p.Stages = append(p.Stages, s)
		}
		return nil
	},
	show: func(p *Policy) any {
		out := make([]any, len(p.Stages))
		for i := range p.Stages {
			out[i] = stageShape.show(&p.Stages[i])
		}
		return out
	},
	loosens: func(l *loosened, path string, a, b *Policy) {
		for _, s := range a.Stages {
			t, ok := b.Stage(s.ID)
			if !ok {
				l.add(join(path, s.ID), stageShape.show(&s), nil)
				continue
			}
			stageShape.loosens(l, join(path, s.ID), &s, &t)
		}
	},
}

var separationShape = shape[Separation]{
	list("distinct", grow, func(s *Separation) *[]string { return &s.Distinct }, idWant),
	word("by", fixed, func(s *Separation) *SeparateBy { return &s.By }, ByPrincipal, ByOperator, ByLaunch, ByModel),
	word("on_violation", later, func(s *Separation) *OnViolation { return &s.OnViolation }, Report, Refuse),
}

// separationField is the list of separation rules.
var separationField = records("separation", grow, separationShape, func(p *Policy) *[]Separation { return &p.Separation },
	func(l *loosened, path string, a, b []Separation) {
		for _, old := range a {
			kept := slices.ContainsFunc(b, func(s Separation) bool {
				return s.By == old.By && !listLoosened(grow, old.Distinct, s.Distinct) && (s.OnViolation == old.OnViolation || s.OnViolation == Refuse)
			})
			if !kept {
				l.add(path, separationShape.show(&old), nil)
			}
		}
	})

var notifyShape = shape[Notify]{
	wordList("on", free, func(n *Notify) *[]string { return &n.On }, "waiting", "blocked", "approved", "delivered"),
	list("exec", fixed, func(n *Notify) *[]string { return &n.Exec }, nil),
	text("webhook_env", free, func(n *Notify) *string { return &n.WebhookEnv }, variableWant),
	text("hmac_env", free, func(n *Notify) *string { return &n.HMACEnv }, variableWant),
}

var notifyField = records("notify", free, notifyShape, func(p *Policy) *[]Notify { return &p.Notify },
	func(*loosened, string, []Notify, []Notify) {})

// records is a list of mappings, which a later layer replaces as a whole.
func records[U any](name string, dir direction, s shape[U], get func(*Policy) *[]U, loosens func(l *loosened, path string, a, b []U)) field[Policy] {
	return field[Policy]{
		name: name, dir: dir,
		read: func(r *reader, p *Policy, n strictyaml.Node, path string) error {
			items, ok := n.Items()
			if !ok {
				return wants(n, path, "a list")
			}
			out := make([]U, 0, len(items))
			for i, item := range items {
				var u U
				at := fmt.Sprintf("%s[%d]", path, i)
				r.note(at, item)
				if err := s.read(r, &u, item, at); err != nil {
					return err
				}
				out = append(out, u)
			}
			*get(p) = out
			return nil
		},
		show: func(p *Policy) any {
			v := *get(p)
			if v == nil {
				return nil
			}
			out := make([]any, len(v))
			for i := range v {
				out[i] = s.show(&v[i])
			}
			return out
		},
		loosens: func(l *loosened, path string, a, b *Policy) { loosens(l, path, *get(a), *get(b)) },
	}
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
