package waitline

// lineView is what one contender sees of the line.
type lineView struct {
	// a list has shown the contender's own node, or the contender is proven to be alone; otherwise
	// the other fields mean nothing
	known    bool
	ahead    int // the number of contenders before it
	blockers int // how many of them block it

	first             Position // the first blocker
	predecessor       Position // the last blocker
	secondPredecessor Position // the blocker before the last
}

// viewFrom returns what the contender at a position sees in a list of names. It does not sort the
// names, since lists may be long. It fails with ErrKindMixed if the kinds are mixed.
func viewFrom(names []string, f Filter, from Position) (v lineView, err error) {
	err = f.forEach(names, func(p Position) {
		if p.Name == from.Name {
			v.known = true
		}
		if p.IsBefore(from) {
			v.ahead++
		}
		if p.Blocks(from) {
			v.addBlocker(p)
		}
	})
	if err != nil { // the view is not complete
		return lineView{}, err
	}
	return v, nil
}

func (v *lineView) addBlocker(p Position) {
	v.blockers++
	if v.blockers == 1 || p.IsBefore(v.first) {
		v.first = p
	}
	switch {
	case v.blockers == 1 || v.predecessor.IsBefore(p):
		v.predecessor, v.secondPredecessor = p, v.predecessor
	case v.blockers == 2 || v.secondPredecessor.IsBefore(p):
		v.secondPredecessor = p
	}
}
