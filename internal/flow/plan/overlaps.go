package plan

// Overlap is two scope rules of two contracts that may name a common path.
type Overlap struct {
	Rule, Other string // ids
	Pattern     string // of Rule
	With        string // of Other
}

// Overlaps lists the pairs of scope rules of two contracts that may name a common
// path, each pair once with the first patterns that show it. What cannot be told
// is an overlap. A contract without scope, as [Manual] makes them, overlaps none.
func Overlaps(a, b *Contract) ([]Overlap, error) {
	x, err := compileRules(a)
	if err != nil {
		return nil, err
	}
	y, err := compileRules(b)
	if err != nil {
		return nil, err
	}
	var out []Overlap
	for _, r := range x {
		for _, o := range y {
			if p, q := r.meets(&o); p != nil {
				out = append(out, Overlap{r.ID, o.ID, p.String(), q.String()})
			}
		}
	}
	return out, nil
}

func (r *rule) meets(o *rule) (p, q *Pattern) {
	for _, p := range r.set {
		for _, q := range o.set {
			if Intersects(p, q) {
				return p, q
			}
		}
	}
	return nil, nil
}

// Reaches tells which scope rule may name a path of the set: a policy raises the
// risk of a plan by it. Empty when none does.
func (c *Contract) Reaches(paths Set) (string, error) {
	rules, err := compileRules(c)
	if err != nil {
		return "", err
	}
	for _, r := range rules {
		if r.set.Intersects(paths) {
			return r.ID, nil
		}
	}
	return "", nil
}
