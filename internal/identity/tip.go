package identity

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// LostIn lists what a newer roster of the same repository takes back: principals
// that it does not have or has as another kind, keys that do not speak for their
// principal any more, or only until an earlier time. The revocations are made at
// the given time. There are none unless both repositories have principals. Roles
// and rights are the business of [Roster.Narrowed].
func (r Roster) LostIn(tip Roster, at time.Time) Revocations {
	if !r.Enforced || !tip.Enforced {
		return nil
	}
	var out Revocations
	for _, p := range r.Principals {
		switch now, ok := tip.Principal(p.Name); {
		case !ok:
			out = append(out, Revocation{Principal: p.Name, At: at, Reason: "no longer in " + PrincipalsFile})
		case now.Kind != p.Kind || now.Operator != p.Operator:
			out = append(out, Revocation{Principal: p.Name, At: at, Reason: "somebody else in " + PrincipalsFile})
		}
	}
	for _, l := range r.Signers {
		print, err := fingerprint(l.Key)
		if err != nil { // was read once
			continue
		}
		for _, name := range l.Principals {
			if _, ok := tip.Principal(name); !ok {
				continue
			}
			names, st := tip.Signers.Speakers(l.Key, FlowNamespace, at)
			if slices.Contains(names, name) {
				continue
			}
			v := Revocation{Key: print, At: at, Reason: "no longer in " + SignersFile}
			if st == Expired {
				v.Since, v.Reason = tip.ends(l.Key).Add(time.Second), "ended in "+SignersFile
			}
			if _, own := r.Signers.Speakers(l.Key, FlowNamespace, at); own == Speaks {
				out = append(out, v)
			}
		}
	}
	return out
}

// Narrowed is the roster with the roles and rights that a newer roster of the
// same repository leaves its principals: what either lacks, nobody has. A
// principal whom the newer one does not have keeps none. It is the roster itself
// unless both repositories have principals.
func (r Roster) Narrowed(tip Roster) Roster {
	if !r.Enforced || !tip.Enforced {
		return r
	}
	r.Principals = slices.Clone(r.Principals)
	for i, p := range r.Principals {
		now, _ := tip.Principal(p.Name)
		p.Roles = slices.DeleteFunc(slices.Clone(p.Roles), func(role string) bool { return !now.Holds(role) })
		// Of waive:* and waive:build, whoever has which, the narrower stays.
		rights := slices.DeleteFunc(slices.Clone(p.Rights), func(right string) bool { return !now.May(right) })
		for _, right := range now.Rights {
			if p.May(right) && !slices.Contains(rights, right) {
				rights = append(rights, right)
			}
		}
		slices.Sort(rights)
		p.Rights = rights
		r.Principals[i] = p
	}
	return r
}

// Warnings say what is sound in a roster and easily misread: times of keys that
// another machine would read as other times.
func (r Roster) Warnings() []string {
	var out []string
	for _, l := range r.Signers {
		if l.Zoned {
			out = append(out, fmt.Sprintf("%s:%d: a time of the key of %s has no Z, so it depends on the time zone of the machine that reads it: write YYYYMMDDHHMMSSZ",
				SignersFile, l.Line, strings.Join(l.Principals, ",")))
		}
	}
	return out
}

// ends is the last second of a key, over all its lines.
func (r Roster) ends(key string) time.Time {
	var last time.Time
	for _, l := range r.Signers {
		if l.Key == key && l.Before.After(last) {
			last = l.Before
		}
	}
	return last
}
