package locks

// view is what a contender sees of the line.
type view struct {
	mine      bool  // the contender itself is there
	ahead     int   // contenders before it
	blockers  int   // those of them that it must wait for
	near, far place // the last of these, and the one before that
}

// see looks at the line from one place, without sorting it: lists may be long.
func see(names []string, co company, from place) (v view, err error) {
	err = each(names, co, func(p place) {
		if p.name == from.name {
			v.mine = true
		}
		if p.before(from) {
			v.ahead++
		}
		if p.blocks(from) {
			v.block(p)
		}
	})
	if err != nil { // what was seen before is not all
		return view{}, err
	}
	return v, nil
}

func (v *view) block(p place) {
	v.blockers++
	switch {
	case v.blockers == 1 || v.near.before(p):
		v.near, v.far = p, v.near
	case v.blockers == 2 || v.far.before(p):
		v.far = p
	}
}
