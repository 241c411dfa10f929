package mutants

func init() { lists["locks"] = locksMutants }

// locksMutants are the safeguards of package locks.
var locksMutants = []mutant{
	// The waiting line.
	{
		name: "numbers are compared as plain integers", file: "locks/position.go", test: "TestSeeAgreesWithOrder",
		old: "return p.seq-q.seq < 0", new: "return p.seq < q.seq",
	},
	{
		name: "a writer does not wait for readers", file: "locks/position.go", test: "TestReadersHoldTogetherAndNobodyOvertakes",
		old: "!(p.kind.isShared() && q.kind.isShared())", new: "!p.kind.isShared()",
	},
	{
		name: "kinds may be mixed", file: "locks/position.go", test: "TestAMixtureIsRefused",
		old: "case ok && !co.admits(p.kind):", new: "case ok && !co.admits(p.kind) && false:",
	},
	{
		name: "a writer's place is not looked at again", file: "locks/line.go", test: "TestAReaderInAWritersPlaceIsSeen",
		old: "return p.kind.mayBeDowngraded() && !c.place.kind.isShared()", new: "return p.kind.mayBeDowngraded() && !c.position.kind.isShared() && false",
	},
	{
		name: "the end of the near neighbour grants though others are ahead", file: "locks/line.go", test: "TestEightClientsReadAndWrite",
		old: "if gone && v.blockers == 1 && !c.placeMayBeTaken(v.near) {", new: "if gone && !c.placeMayBeTaken(v.near) {",
	},
	{
		name: "a deleted waiter is not noticed", file: "locks/line.go", test: "TestAWaiterWhoseNodeWasDeletedIsNotGranted",
		old: "		err = errPlaceLost\n", new: "		v.mine = true\n",
	},
	{
		name: "a waiter that gives up tells its neighbour before its deletion is on its way", file: "locks/line.go", test: "TestANeighbourWaitsUntilTheDeletionIsOnItsWay",
		old: "return c.s.Primitives().Discard(c.leaveLocalWaiters, c.node.Path)", new: "c.row.markPassed(c, true)\n\tc.leaveLocalWaiters()\n\treturn c.s.Primitives().Discard(c.leaveLocalWaiters, c.node.Path)",
	},
	{
		name: "a holder tells its neighbour before its deletion is on its way", file: "locks/line.go", test: "TestANeighbourWaitsUntilTheDeletionIsOnItsWay",
		old: "r, gone := c.line.discardNodes(c.s, early, c.leaveLocalWaiters, c.node.Path)", new: "c.leaveLocalWaiters()\n\tr, leaveLocalWaiters := c.line.discardNodes(c.s, early, c.leaveLocalWaiters, c.node.Path)",
	},
	{
		name: "the node ahead of one that may be replaced is watched", file: "locks/line.go",
		old: "if v.blockers == 1 || c.placeMayBeTaken(v.near) {", new: "if v.blockers == 1 {",
		redundant: "an event of the node further ahead makes the contender look again, which costs a list and changes nothing",
	},
	{
		name: "a waiter that loses its place again and again does not pause", file: "locks/line.go", test: "TestAWaiterWhoseNodeIsDeletedAgainAndAgainPauses",
		old: "if lost.wait(ctx, began) == nil {", new: "if _ = lost; ctx.Err() == nil && !began.IsZero() {",
	},
	{
		name: "a contender that fails leaves its node", file: "locks/line.go", test: "TestAPanicOfTheQueuedFunctionLeavesNoNode",
		old: "		if !granted {\n", new: "		if false && !granted {\n",
	},
	{
		name: "a try does not look before it joins", file: "locks/line.go", test: "TestLockAndRelease",
		old: "\tif err := l.checkVacant(names); err != nil {\n\t\treturn err\n\t}\n", new: "\t_, err = l.checkVacant(names), nil\n",
	},
	{
		name: "the servers' own directory may be a lock", file: "locks/line.go", test: "TestBadInput",
		old: "if full == serversOwn || ", new: "if ",
	},
	// Neighbours of one session.
	{
		name: "whoever leaves lets the next one in", file: "locks/localwaiters.go", test: "TestTwoReadersInAWritersPlaceKeepAWriterOut",
		old: "\tcase c.cleared:\n\t\tn.markUnblocked()", new: "\tcase true:\n\t\tn.markUnblocked()",
	},
	{
		name: "a reader becomes the neighbour of a writer that has left", file: "locks/localwaiters.go",
		old: "	if w.left {\n		return false\n	}\n	c.next = w.next", new: "	c.next = w.next",
		redundant: "the transaction that creates the reader is guarded by the writer's lease, which has ended, and is refused",
	},
	{
		name: "a writer is not found by its number again when its reader has left", file: "locks/localwaiters.go",
		old: "r.members[p.place.seq] = p\n\t}\n}\n\n// markPassed", new: "_ = p\n\t}\n}\n\n// markPassed",
		redundant: "whoever comes next is no neighbour then, and lists and watches by itself",
	},
	{
		name: "a list that has begun serves who asks later", file: "locks/localwaiters.go",
		old: "	r.asked, r.listing = nil, l != nil", new: "	r.listing = l != nil\n	if l != nil {\n		select {\n		case <-l.done:\n			r.asked, r.listing, l = nil, false, nil\n		default:\n		}\n	}",
		redundant: "requests of a session are answered in order: a list that is under way when a create was answered was sent behind it; what it shows and is gone is watched, and looked at again",
	},
	// A contender that is proven to be alone.
	{
		name: "lone: the number is not compared", file: "locks/localwaiters.go", test: "TestAWaiterBehindARoundIsNotPassedOver",
		old: " && c.place.seq == o.seq+1", new: "",
	},
	{
		name: "lone: the transaction is not compared", file: "locks/localwaiters.go", test: "TestTheNextNumberProvesNothingAlone",
		old: " && c.node.Zxid == o.deleted+1", new: "",
	},
	{
		name: "lone: the session is not compared", file: "locks/localwaiters.go", test: "TestRandomReadersAndWriters",
		old: " && c.s.ID() == o.session", new: "",
	},
	{
		name: "lone: readers prove it too", file: "locks/localwaiters.go", test: "TestAReaderIsNeverAlone",
		old: "if c.place.kind.familyName() == WriteKind {", new: "if false {",
	},
	{
		name: "lone: an older deletion is remembered", file: "locks/localwaiters.go",
		old: "if zxid > o.deleted {", new: "if zxid != 0 {",
		redundant: "any deletion proves as much together with its own number; an older one only does so less often",
	},
	// Leases.
	{
		name: "the node is given back before the context ends", file: "locks/lease.go", test: "TestTheFormerContextIsDoneAtTheGrant",
		old: "	if l.hold != nil {\n		l.hold.End(cause)", new: "	l.given = l.back(early)\n	l.back = nothingToGiveBack\n	if l.hold != nil {\n		l.hold.End(cause)",
	},
	{
		name: "a guard asks only this process", file: "locks/lease.go", test: "TestALateGuardedWriteIsRefusedByTheServers",
		old: "return framework.CheckOp(cmp.Or(l.fence, l.node), framework.AnyVersion).When(l.Err)", new: "return framework.CheckOp(cmp.Or(\"/\", l.fence), framework.AnyVersion).When(l.Err)",
	},
	{
		name: "a guard asks only the servers", file: "locks/lease.go", test: "TestTheEndOfAForgottenHoldIsTold|TestALeaseUsedAfterItsEnd",
		old: "return framework.CheckOp(cmp.Or(l.fence, l.node), framework.AnyVersion).When(l.Err)", new: "return framework.CheckOp(cmp.Or(l.fence, l.node), framework.AnyVersion)",
	},
	{
		name: "a claim's guard checks the node that all holders share", file: "locks/lease.go", test: "TestALateGuardedWriteIsRefusedByTheServers",
		old: "framework.CheckOp(cmp.Or(l.fence, l.node), framework.AnyVersion)", new: "framework.CheckOp(cmp.Or(l.node, l.fence), framework.AnyVersion)",
	},
	{
		name: "a guarded turn is passed on", file: "locks/slice.go", test: "TestALateGuardedWriteIsRefusedByTheServers",
		old: "node.Err() == nil && !guarded && ", new: "node.Err() == nil && (guarded || true) && ",
	},
	{
		name: "the time left does not know the greatest hold", file: "locks/lease.go", test: "TestTheTimeLeftKnowsTheGreatestHold",
		old: "left = min(left, max(0, time.Until(expires)))", new: "_ = expires",
	},
	{
		name: "the greatest hold of a part begins before the whole", file: "locks/lease.go", test: "TestTheGreatestHoldOfAPartBeginsWithTheWhole",
		old: "if maxHold > 0 && !l.waitsForMulti(maxHold) {", new: "if maxHold > 0 {",
	},
	{
		name: "the greatest hold ends the context only", file: "locks/lease.go",
		old: "l.limit = time.AfterFunc(maxHold, func() { l.endOnce(ErrMaxHold) })", new: "l.limit = time.AfterFunc(maxHold, func() { l.life.End(ErrMaxHold) })",
		redundant: "a lease whose context was ended by anybody gives back what it has",
	},
	{
		name: "a lease whose context has ended keeps its node", file: "locks/lease.go", test: "TestALostSliceEndsItsTurn|TestTheNextHolderOfTheSameClientNeedNotWaitForTheRelease|TestANestedHoldEndsWithAForgottenOuter",
		old: "l.unwatch = context.AfterFunc(l.Context(), func() { l.endOnce(nil) })", new: "l.unwatch = func() bool { return true }",
	},
	{
		name: "an ended lease's context still holds", file: "locks/lease.go", test: "TestAClaimsOwnContextIsRefused|TestANestedHoldHasItsOwnEnd|TestATurnIsGivenUpWithItsContext",
		old: "if lease == nil || lease.Err() != nil {", new: "if lease == nil {",
	},
	{
		name: "a lease carries the span of the ask", file: "locks/lease.go", test: "TestWorkUnderALeaseBelongsToTheCallersSpan",
		old: "leaseContext{callerContext(ctx), l}", new: "leaseContext{ctx, l}",
	},
	{
		name: "Do does not tell of a loss", file: "locks/lease.go", test: "TestDoTellsOfALossInside",
		old: "lost != nil && !errors.Is(err, lost)", new: "lost != nil && !errors.Is(err, lost) && false",
	},
	{
		name: "a holder that watches its node does not heed its end", file: "locks/revoke.go", test: "TestAHolderThatListensNoticesItsNodesEndAtOnce",
		old: "l.loseNodes(fmt.Errorf(\"%w: %s\", framework.ErrNodeGone, node))", new: "_ = fmt.Errorf(\"%w: %s\", framework.ErrNodeGone, node)",
	},
	{
		name: "a writer goes on as a reader without its guard", file: "locks/rwlock.go", test: "TestAWriterWhoseNodeWasDeletedBecomesNoReader",
		old: "Count: 1, Mode: framework.Ephemeral, With: []framework.Op{writer.Guard()},", new: "Count: 1, Mode: framework.Ephemeral,",
	},
	// Several locks.
	{
		name: "several locks are asked for in any order", file: "locks/multi.go", test: "TestAMultiLocksOrder",
		old: "return cmp.Compare(a.Path(), b.Path())", new: "return cmp.Compare(0, 0*len(a.Path()+b.Path()))",
	},
	{
		name: "several: a part that has lapsed is not looked at at last", file: "locks/multi.go", test: "TestAPartThatHasLapsedBeginsAgain",
		old: "		if p.Err() != nil {\n			return &partLostError{p.session}", new: "		if false {\n			return &partLostError{p.session}",
	},
	{
		name: "several: it asks on though a part has ended", file: "locks/multi.go", test: "TestASessionLostInTheMiddleBeginsAgain",
		old: "func() { cancel(&partLostError{lease.session}) }", new: "func() {}",
	},
	{
		name: "several: a part that is lost again and again is asked for without a pause", file: "locks/multi.go", test: "TestAPartThatIsLostAgainAndAgainIsAskedForWithPauses",
		old: "pauses.wait(ctx, began) == nil", new: "ctx.Err() == nil && !began.IsZero()",
	},
	{
		name: "several: the first part's token", file: "locks/multi.go", test: "TestTheTokenOfSeveralIsTheHighest",
		old: "lease.token = max(lease.token, p.token)", new: "combinedLease.token = first.token",
	},
	{
		name: "several: the whole goes on for a moment behind a part's end", file: "internal/lifetime/lifetime.go", pkg: "./framework", test: "TestLifetimesEndTogether",
		old: "	for _, d := range dependents {\n		_ = d.end(cause)\n	}", new: "	_ = dependents",
	},
	// Claims.
	{
		name: "claim: another's node is not noticed", file: "locks/claim.go", test: "TestAClaimThatSomebodyElseHasNowEnds",
		old: "err == nil && st.Czxid != node.Zxid", new: "err == nil && st.Czxid == 0",
	},
	{
		name: "claim: the path mutex is unlocked before the outcome is known", file: "locks/claim.go", test: "TestTheNextClaimOfASessionIsItsOwn",
		old: "		go func() { // nobody waits for the outcome any more\n", new: "		<-d.turn\n		go func() { // nobody waits for the outcome any more\n			d.turn <- struct{}{}\n",
	},
	{
		name: "claim: the path mutex is unlocked before the node is gone", file: "locks/claim.go", test: "TestTheNextClaimOfASessionIsItsOwn",
		old: "\t\t<-discarded.Done()\n\t\td.unlock()", new: "\t\td.unlock()\n\t\t<-discarded.Done()",
	},
	{
		name: "claim: it waits for a directory", file: "locks/claim.go", test: "TestAClaimOfADirectoryIsRefused",
		old: "if st.EphemeralOwner == 0 {", new: "if false {",
	},
	// Semaphores.
	{
		name: "semaphore: the number's version is not checked", file: "locks/semaphore.go", test: "TestPermitsAreTakenAtTheirPresentNumber",
		old: "framework.CheckOp(s.record, p.version)", new: "framework.CheckOp(s.record, 0*p.version+framework.AnyVersion)",
	},
	{
		name: "semaphore: the record may be another one", file: "locks/semaphore.go", test: "TestPermitsOfAReplacedRecord",
		old: "if st.Czxid != p.created {", new: "if false {",
	},
	{
		name: "semaphore: one too many at once", file: "locks/semaphore.go", test: "TestBothFinishAcrossARestart|TestPermitsAreGrantedInOrder",
		old: "	if len(names)+n <= p.Permits {\n		return p, nil\n", new: "	if len(names)+n <= p.Permits+1 {\n		return p, nil\n",
	},
	{
		name: "semaphore: one too many behind a wait", file: "locks/semaphore.go", test: "TestBothFinishAcrossARestart|TestPermitsAreGrantedInOrder",
		old: "	if len(names)+n <= p.Permits {\n		return p, true, nil\n", new: "	if len(names)+n <= p.Permits+1 {\n		return p, true, nil\n",
	},
	{
		name: "semaphore: a lost place is taken for a refusal", file: "locks/semaphore.go", test: "TestAWaiterForPermitsWhoseNodeWasDeleted",
		old: "			return nil, errPlaceLost\n		default:", new: "			return nil, err\n		default:",
	},
	{
		name: "semaphore: a disagreement is not told", file: "locks/semaphore.go", test: "TestMembersAgreeOnTheNumber",
		old: "if err == nil && s.permits != p.Declared && s.permits != p.Permits {", new: "if false {",
	},
	// Slices.
	{
		name: "slice: who gives up leaves its turn to nobody", file: "locks/slice.go", test: "TestASliceIsNotLeftToWhoGivesUp",
		old: "\t\tif o.lease != nil {\n\t\t\to.lease.endOnce(ErrReleased)\n\t\t}\n\tdefault:", new: "		_ = o\n	default:",
	},
	{
		name: "slice: it has no end", file: "locks/slice.go", test: "TestASliceEndsInTime",
		old: "time.Now().Before(s.until)", new: "!s.until.IsZero()",
	},
	{
		name: "slice: an ended node's turn goes on", file: "locks/slice.go", test: "TestALostSliceEndsItsTurn",
		old: "\t\tpresent.endOnce(nil)\n", new: "		_ = present\n",
	},
	{
		name: "slice: the place is lost with the first that waits", file: "locks/slice.go", test: "TestASliceKeepsItsPlaceInTheLine",
		old: "context.WithCancel(context.WithoutCancel(first.ctx))", new: "context.WithCancel(first.ctx)",
	},
	{
		name: "slice: an ask that nobody waits for goes on", file: "locks/slice.go", test: "TestASliceThatNobodyWaitsForLeavesTheLine",
		old: "	if s.waiting.Len() == 0 && s.giveUp != nil {\n		s.giveUp()\n	}\n", new: "",
	},
	// The rest of what was once taken out by hand.
	{
		name: "a reader lets the writer behind it in", file: "locks/localwaiters.go", test: "TestTwoReadersInAWritersPlaceKeepAWriterOut",
		old: "c.place.kind.isShared() && n.place.kind.isShared() && !n.admitted", new: "c.place.kind.isShared() && !n.admitted",
	},
	{
		name: "two readers in one place are chained wrong", file: "locks/localwaiters.go", test: "TestTwoReadersInAWritersPlaceKeepAWriterOut",
		old: "for p.next != nil && p.next.place.seq == p.place.seq {", new: "for p.next != nil && p.next == p {",
	},
	{
		name: "a reader comes before the writer of its number", file: "locks/inspect.go", test: "TestInspectReadersAndWriters",
		old: "-cmp.Compare(a.kind, b.kind)", new: "cmp.Compare(a.kind, b.kind)",
	},
	{
		name: "a reader in a writer's place has a token of its own", file: "locks/rwlock.go", test: "TestAWriterGoesOnAsAReaderFromWithin",
		old: "return l.newLease(ctx, c, writer.token)", new: "return l.newLease(ctx, c, c.node.Zxid)",
	},
	{
		name: "claim: a released claim deletes the node by its name", file: "locks/claim.go", test: "TestALostReplyOfAReleaseLeavesTheNextClaimAlone",
		old: "return d.s.Primitives().DiscardOwn(queued, node.Created, node.fence)", new: "return d.s.Primitives().Discard(queued, node.Path, node.fence)",
	},
	{
		name: "semaphore: who has permits stays in line", file: "locks/semaphore.go", test: "TestBothFinishAcrossARestart|TestPermitsAreGrantedInOrder",
		old: "framework.CheckOp(s.record, p.version), framework.DeleteOp(c.node.Path, framework.AnyVersion)}", new: "framework.CheckOp(s.record, p.version)}",
	},
	{
		name: "semaphore: a mixed directory is accepted", file: "locks/semaphore.go", test: "TestKindsOfOnePathRefuseEachOther",
		old: "if err := s.checkUnmixed(ctx); err != nil {", new: "if err := ctx.Err(); err != nil {",
	},
	{
		name: "slice: the turn is passed on within an ended node", file: "locks/slice.go",
		old: "node != nil && node.Err() == nil && !guarded", new: "node != nil && !guarded",
		redundant: "a turn within an ended node has ended too, and its holder is told at once; without the look one asker more is told so",
	},
	{
		name: "several: they are released in the order of their paths", file: "locks/multi.go", test: "TestAMultiLocksOrder",
		old: "slices.Backward(b.parts)", new: "slices.All(b.parts)",
	},
	{
		name: "several: the time left is that of the first", file: "locks/lease.go", test: "TestTheTimeLeftIsTheLeastOfAll",
		old: "	for _, p := range l.parts {\n		left", new: "	for _, p := range l.parts[:min(1, len(l.parts))] {\n		left",
	},
	{
		name: "guards name the first of several nodes", file: "locks/lease.go", test: "TestGuardsNameEachNode",
		old: "for _, node := range l.nodes {", new: "for _, node := range l.nodes[:min(1, len(l.nodes))] {",
	},
	{
		name: "a request to release is seen on the first of several nodes alone", file: "locks/revoke.go", test: "TestEachNodeOfALeaseIsListenedTo",
		old: "go part.watchForRevocation(l.Context(), node, tell)", new: "_ = node\n\t\t\tgo part.watchForRevocation(l.Context(), part.node, tell)",
	},
}
