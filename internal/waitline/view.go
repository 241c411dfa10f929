package waitline

// lineView is what one contender sees in a list of the line.
type lineView struct {
	joined   bool // the list shows the contender's own node
	ahead    int  // contenders before it
	blockers int  // those of them that it must wait for

	first             Position // of the blockers
	predecessor       Position // the last of the blockers
	secondPredecessor Position // the blocker before that one
}

// viewFrom returns what the contender at one position sees. It does not sort the names: lists may be long. It fails with ErrKindMixed
// for a mixture of kinds.
func viewFrom(names []string, f Filter, from Position) (v lineView, err error) {
	err = f.forEach(names, func(p Position) {
		if p.Name == from.Name {
			v.joined = true
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
