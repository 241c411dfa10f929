package mutants

func init() { lists["framework"] = frameworkMutants }

// frameworkMutants are the safeguards of package framework.
var frameworkMutants = []mutant{
	// The lease rule.
	{
		name: "the lease's margin is half as long", file: "framework/lease.go", test: "TestMargin",
		old: "return 50*time.Millisecond + timeout/50", new: "return 25*time.Millisecond + timeout/100",
	},
	{
		name: "the lease counts from this beat, not the one before", file: "framework/lease.go", test: "TestLeaseCountsFromTheBeatBefore",
		old: "		l.extend(l.former)", new: "		l.extend(sentAt)",
	},
	{
		name: "beats of a former connection count", file: "framework/lease.go", test: "TestLeaseForgetsBeatsOfAFormerConnection",
		old: "l.greeted, l.pending, l.paired = sentAt, true, false", new: "l.greeted, l.pending = sentAt, true",
	},
	{
		name: "the newest session timeout counts, not the smallest", file: "framework/lease.go", test: "TestLeaseKeepsTheSmallestTimeout",
		old: "if l.timeout == 0 || timeout < l.timeout {", new: "if true {",
	},
	{
		name: "a write that another connection acknowledged counts", file: "framework/proof.go",
		old: "	if !s.on(generation) {\n		return errConnectionGone\n	}\n	s.lived((*lease).written)", new: "	s.lived((*lease).written)",
		redundant: "a request passes only on a connection that this goroutine has admitted, which is the one of this beat",
	},
	{
		name: "a sync that another connection acknowledged counts", file: "framework/proof.go",
		old: "	if !s.on(generation) {\n		return errConnectionGone\n	}\n	s.lived(func", new: "	s.lived(func",
		redundant: "a request passes only on a connection that this goroutine has admitted, which is the one of this beat",
	},
	{
		name: "a lapsed lease is revived", file: "framework/session.go", test: "TestALapsedLeaseIsNotRevived",
		old: "	if !s.standing() {\n		return\n	}\n	s.mu.Lock()\n	before", new: "	s.mu.Lock()\n	before",
	},
	{
		name: "no alarm is set for the lease's end", file: "framework/session.go", test: "TestSessionEndsBeforeTheServerEndsIt",
		old: "		s.alarm.Set(until)\n", new: "",
	},
	{
		name: "Session.Err does not read the clock", file: "framework/session.go",
		old: "	s.standing()\n	return context.Cause(s.ctx)", new: "	return context.Cause(s.ctx)",
		redundant: "context.Cause asks the session's context for its error, which reads the clock",
	},
	{
		name: "the session's context does not read the clock", file: "framework/session.go", test: "TestErrReadsTheClock",
		old: "	c.s.standing()\n	return c.Context.Err()", new: "	return c.Context.Err()",
	},
	{
		name: "a beat has no deadline", file: "framework/proof.go", test: "TestAnOverdueBeatGoesToAnotherServer",
		old: "context.WithTimeoutCause(s.ctx, interval(s.Timeout()), errOverdue)", new: "context.WithTimeoutCause(s.ctx, 100*interval(s.Timeout()), errOverdue)",
	},
	{
		name: "an overdue connection is not cut", file: "framework/life.go", test: "TestAnOverdueBeatGoesToAnotherServer",
		old: "	s.mon.Cut(generation)\n", new: "",
	},

	// Holds.
	{
		name: "the hold of a deleted node goes on", file: "framework/proof.go", test: "TestHoldEndsWithItsNode",
		old: "	held[i].hold.End(cause)\n", new: "",
	},
	{
		name: "an ended session gives a hold", file: "framework/hold.go", test: "TestAnEndedSessionGivesNoHold",
		old: "	if err := s.Err(); err != nil {\n		return nil, err\n	}\n	h :=", new: "	h :=",
	},

	// Protected creates and deletions.
	{
		name: "a look-up without a sync", file: "framework/protected.go",
		old: "	if err := p.s.Sync(p.s.ctx, p.dir); err != nil {\n		return nil, err\n	}\n	if p.exact", new: "	if p.exact",
		test: "TestNoOrphanWhenRepliesAreLost",
	},
	{
		name: "an answer of another session is believed", file: "framework/protected.go",
		old: "	case r.SessionID != p.s.ID():\n		return nil, ErrSuspended // whose they are is looked up\n", new: "",
		redundant: "a monitor carries one session only: TestNoSecondSession of internal/link",
	},
	{
		name: "the owner of a node of our name is not checked", file: "framework/protected.go", test: "TestAnEphemeralNodeOfAnotherSessionIsNotOurs",
		old: "		case st.EphemeralOwner != p.s.ID() && p.exact:\n			return nil, ErrNodeExists\n", new: "		case p.exact:\n",
	},
	{
		name: "the owner of a node of our UUID is not checked", file: "framework/protected.go", test: "TestAProtectedNodeThatAnotherSessionHasMadeAnewIsNotOurs",
		old: "		case st.EphemeralOwner != p.s.ID():\n", new: "		case false:\n",
	},
	{
		name: "a caller that leaves does not undo what is settled", file: "framework/protected.go", test: "TestACreateGivenUpAsItSettlesIsUndone",
		old: "	if p.settled {\n		p.undo()\n	}\n	return cause", new: "	return cause",
	},
	{
		name: "what settles for a caller that has left is not undone", file: "framework/protected.go", test: "TestNoOrphanWhenTheContextEnds",
		old: "	p.done <- err\n	if p.left {\n		p.undo()\n	}", new: "	p.done <- err",
	},
	{
		name: "DiscardOwn deletes a node of anyone", file: "framework/discard.go", test: "TestDiscardOwnSparesANodeOfAnotherSession",
		old: "err == nil && st.Czxid == node.Zxid {", new: "err == nil && st.Czxid != 0 {",
	},
	{
		name: "a refused deletion has a transaction", file: "framework/discard.go", test: "TestADeletionThatWasRefusedHasNoTransaction",
		old: "		if err != nil {\n			r.Zxid = 0\n		}\n", new: "",
	},
	{
		name: "a transaction of creates asks no conditions", file: "framework/together.go", test: "TestATransactionOfCreatesAsksItsConditions",
		old: "	if err := conditions(ops); err != nil {\n		return nil, nil, refusal{err}\n	}\n", new: "",
	},
	{
		name: "a transaction asks no conditions", file: "framework/transaction.go", test: "TestAConditionRefusesBeforeSending",
		old: "	if err := conditions(ops); err != nil {\n		return nil, err\n	}\n", new: "",
	},
	{
		name: "an ephemeral node of anyone settles a create", file: "framework/ops.go", test: "TestAnEphemeralNodeOfAnotherSessionIsNotOurs",
		old: "case mode == Ephemeral && r.stat.EphemeralOwner == s.ID():", new: "case mode == Ephemeral && r.stat.EphemeralOwner != 0:",
	},

	// Watches.
	{
		name: "watchers are not told of a reconnect", file: "framework/life.go", test: "TestAReconnectWakesWatchers",
		old: "		s.watches.reconnected()\n", new: "",
	},
	{
		name: "who joins a question for a missing node is not told", file: "framework/watchops.go", test: "TestAWatchThatJoinsAQuestionForAMissingNodeIsTold",
		old: "		e.tell(Event{Kind: NodeDeleted, Path: e.key.full})\n", new: "		e.sweep()\n",
	},

	// Sessions of a client.
	{
		name: "a session of an earlier epoch is published", file: "framework/client.go",
		old: "s.ctx.Err() != nil || c.session != nil && c.session.epoch > s.epoch", new: "s.ctx.Err() != nil",
		redundant: "a session ends before the next one is opened, and one that has ended is refused",
	},
	{
		name: "the cause of a context is taken for an answer", file: "framework/errors.go", test: "TestEndedTellsErrorAndCause",
		old: "return !slices.Contains(own, target) && errors.Is(e.cause, target)", new: "return !slices.Contains(own[:0], target) && errors.Is(e.cause, target)",
	},
}
