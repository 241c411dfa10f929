package mutants

// membersMutants are the safeguards of package members.
var membersMutants = []mutant{
	{
		promise: "A member is listed once",
		name:    "a member joins again with what it joined with", file: "members/membership.go",
		test: "TestAMemberJoinsAgainOnItsNextSession",
		old: "func (m *Membership) stayOnSession(s *framework.Session) error {\n	data, revision, err := " +
			"m.nodeRecord()",
		new: "func (m *Membership) stayOnSession(s *framework.Session) error {\n	m.mu.Lock()\n	m.info = " +
			"Info{}\n	m.mu.Unlock()\n	data, revision, err := m.nodeRecord()",
	},
	{
		promise: "A member is listed once",
		name:    "Leave leaves the node of a former session", file: "members/membership.go",
		test: "TestLeaveDeletesTheNodeOfAFormerSession",
		old:  "Discard(nil, node, m.former...)", new: "Discard(nil, node)",
	},
	{
		promise: "A member is listed once",
		name:    "an update ends before it is written", file: "members/membership.go",
		test: "TestUpdatesSurviveLostReplies",
		old:  "if stored >= mine {", new: "if stored >= mine || true {",
	},
	{
		promise: "A watch of a group reports changes in the servers' order",
		name:    "a node that was changed since the list is told early", file: "members/view.go",
		test: "TestChangesBetweenTwoReadsAreInOrder",
		old:  "if len(later) > 0 && !r.anyMoment {", new: "if len(later) > 0 && false {",
	},
	{
		promise: "A watch of a group reports changes in the servers' order",
		name:    "changes are told in the order of the members", file: "members/view.go", test: "TestWatchesAreInOrder",
		old: "cmp.Or(cmp.Compare(a.Zxid, b.Zxid), cmp.Compare(",
		new: "cmp.Or(0*cmp.Compare(a.Zxid, b.Zxid), cmp.Compare(",
	},
	{
		promise: "A watch of a group reports changes in the servers' order",
		name:    "a former session's node counts", file: "members/view.go", test: "TestTheNewestNodeOfAnIDCounts",
		old: "if names[len(names)-1] == name {", new: "if names[0] == name {",
	},
	{
		promise: "A watch of a group reports changes in the servers' order",
		name:    "a watch begins without a sync", file: "members/follow.go", test: "TestAWatchBeginsWithASync",
		old: "		if sync {\n", new: "		if sync && w.last != nil {\n",
	},
	{
		promise: "Each listed process with the ID acknowledges a drain only after",
		name:    "an answer replaces a request that came after a withdrawal", file: "members/cordonhandler.go",
		test: "TestAnAnswerToAWithdrawnRequestReplacesNoOther",
		old:  "	if errors.Is(err, framework.ErrNoNode) || err == nil && stat.Mzxid != c.zxid {",
		new:  "	if errors.Is(err, framework.ErrNoNode) || err == nil && stat.Mzxid != c.zxid && false {",
	},
	{
		promise: "Each listed process with the ID acknowledges a drain only after",
		name:    "an answer removes what a newer release has written", file: "members/record.go",
		test: "TestTheCordonOfANewerReleaseKeepsItsFields",
		old:  "	r.unknown = unknown\n", new: "	_ = unknown\n",
	},
	{
		promise: "Each listed process with the ID acknowledges a drain only after",
		name:    "a drain is acknowledged when it begins", file: "members/cordonhandler.go",
		test: "TestADrainIsAcknowledgedWhenItHasEnded",
		old:  "	ctx, w.cancel = context.WithCancelCause(ctx)\n",
		new: "	ctx, w.cancel = context.WithCancelCause(ctx)\n	h.recordAnswer(c.request, Answer{State: " +
			"Drained}, false)\n",
	},
	{
		promise: "Each listed process with the ID acknowledges a drain only after",
		name:    "a repeated request is the withdrawn one", file: "members/cordon.go",
		test: "TestADrainThatIsRepeatedAfterAnUncordonDrainsAgain",
		old:  "	wanted.Request = uuid.NewString()\n	*tried = append(*tried, wanted.Request)\n",
		new:  "	*tried = append(*tried, uuid.NewString())\n	wanted.Request = (*tried)[0]\n",
	},
	{
		promise: "Each listed process with the ID acknowledges a drain only after",
		name:    "a late uncordon removes a later cordon", file: "members/cordon.go",
		test: "TestALateUncordonRemovesNoLaterCordon",
		old:  "framework.CheckOp(g.path, group.Version), framework.DeleteOp(node",
		new:  "framework.CheckOp(g.path, 0*group.Version-1), framework.DeleteOp(node",
	},
	{
		promise: "Each listed process with the ID acknowledges a drain only after",
		name:    "a member leaves while its drain function runs", file: "members/membership.go",
		test: "TestAMemberLeavesDuringADrain",
		old:  "	m.waitForDrain(ctx)\n", new: "",
	},
	{
		promise: "Each listed process with the ID acknowledges a drain only after",
		name:    "one process's answer is enough", file: "members/member.go", test: "TestAMemberDiesDuringADrain",
		old: "case answer == \"\", c.Drain && answer != Drained:\n			state = pending",
		new: "case answer == \"\", c.Drain && answer != Drained:\n			if !c.isDrained() " +
			"{\n				state = pending\n			}",
	},
	{
		promise: "Each listed process with the ID acknowledges a drain only after",
		name:    "a member that joins again unseen has left", file: "members/cordon.go",
		test: "TestAMemberJoinsAgainWhileDrainIsCutOff",
		old:  "		if !errors.Is(err, ErrLeft) {\n", new: "		if !errors.Is(err, ErrLeft) || true {\n",
	},
}
