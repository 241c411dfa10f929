package mutants

func init() { lists["locks"] = locksMutants }

// locksMutants are the safeguards of package locks.
var locksMutants = []mutant{
	// Telemetry.
	{
		name: "a multi-lock that fails waits for its parts for as long as they stay", file: "locks/multi.go",
		test: "TestAMultiLockFailsThoughAPartStays",
		old:  "context.WithTimeout(ctx, parts[0].client.Config().CleanupTimeout)", new: "context.WithCancel(ctx)",
	},
	{
		name: "a wait has no link to the holder", file: "internal/waitline/line.go", pkg: "./locks",
		test: "TestAWaitLinksToTheHolderAndToTheOneBefore",
		old:  "znode.Join(c.line.dir, v.first.Name), znode.Join(c.line.dir, v.predecessor.Name))",
		new:  "znode.Join(c.line.dir, v.predecessor.Name))",
	},
	{
		name: "a hold's end is not counted", file: "internal/waitline/telemetry.go", pkg: "./locks",
		test: "TestHoldsAreMeasured",
		old:  "return HoldMeasurement{t, time.Now()}", new: "return HoldMeasurement{}",
	},
	{
		name: "a wait costs an allocation without a provider", file: "internal/waitline/telemetry.go",
		pkg:  "./internal/waitline",
		test: "TestNothingIsAllocatedForMetricsWithoutAProvider",
		old:  "if t.waits.Enabled(ctx) {", new: "if true {",
	},
	{
		name: "a hold's end is measured under the lease's mutex", file: "locks/lease.go",
		test: "TestAnInstrumentMayAskTheLease",
		old:  "\t\tl.hold.End(cause)\n\t\tended = l\n", new: "\t\tl.hold.End(cause)\n\t\tl.measureEnd()\n",
	},
	// The waiting line.
	{
		name: "numbers are compared as plain integers", file: "internal/waitline/position.go",
		test: "TestViewAgreesWithTheOrder",
		old:  "return p.Seq-q.Seq < 0",
		new:  "return p.Seq < q.Seq",
	},
	{
		name: "a writer does not wait for readers", file: "internal/waitline/position.go", pkg: "./locks",
		test: "TestReadersHoldTogetherInOrder",
		old:  "!(p.Kind.IsShared() && q.Kind.IsShared())",
		new:  "!p.Kind.IsShared()",
	},
	{
		name: "kinds may be mixed", file: "internal/waitline/position.go", test: "TestAMixtureIsRefused",
		old: "case ok && !f.admitsKind(p.Kind):",
		new: "case ok && !f.admitsKind(p.Kind) && false:",
	},
	{
		name: "a writer's place is not looked at again", file: "internal/waitline/line.go", pkg: "./locks",
		test: "TestAReaderInAWritersPlaceIsSeen",
		old:  "return p.Kind.mayBeDowngraded() && !c.local.position.Kind.IsShared()",
		new:  "return p.Kind.mayBeDowngraded() && !c.local.position.Kind.IsShared() && false",
	},
	{
		name: "the end of the near neighbour grants though others are ahead", file: "internal/waitline/line.go",
		pkg: "./locks", test: "TestEightClientsReadAndWrite",
		old: "if event == framework.NodeDeleted && v.blockers == 1 && !c.mayBeReplaced(v.predecessor) {",
		new: "if event == framework.NodeDeleted && !c.mayBeReplaced(v.predecessor) {",
	},
	{
		name: "a waiter lists the line after a reconnect", file: "internal/waitline/line.go", pkg: "./locks",
		test: "TestALongLineIsListedOncePerJoin",
		old:  "if event == framework.Reconnected {",
		new:  "if event == framework.Reconnected && false {",
	},
	{
		name: "a waiter does not watch the second predecessor again after a reconnect",
		file: "internal/waitline/line.go", pkg: "./locks",
		test: "TestALongLineIsListedOncePerJoin|TestAWaiterSeesWhatLeftDuringItsReconnect",
		old:  "\t\tpredecessor.stopWatch()\n\t\tsecond.stopWatch()\n\t\treturn event.Kind, nil\n",
		new:  "\t\tpredecessor.stopWatch()\n\t\treturn event.Kind, nil\n",
	},
	{
		name: "a deleted waiter is not noticed", file: "internal/waitline/line.go", pkg: "./locks",
		test: "TestWaiterWithDeletedNodeIsNotGranted",
		old:  "\t\terr = ErrPlaceLost\n",
		new:  "\t\tv.known = true\n",
	},
	{
		name: "a waiter that gives up tells its neighbour before its deletion is on its way",
		file: "internal/waitline/line.go", pkg: "./locks", test: "TestANeighbourWaitsUntilTheDeletionIsOnItsWay",
		old: "\t\tc.WakeNext()\n\t\treturn\n\t}\n\tc.Leave(nil)\n",
		new: "\t\tc.WakeNext()\n\t\treturn\n\t}\n\tc.localContenders.markGranted(&c.local, " +
			"true)\n\tc.WakeNext()\n\tc.Leave(nil)\n",
	},
	{
		name: "a holder tells its neighbour before its deletion is on its way", file: "internal/waitline/line.go",
		pkg: "./locks", test: "TestANeighbourWaitsUntilTheDeletionIsOnItsWay",
		old: "\tif queued == nil {\n\t\treturn c.s.Primitives().Discard(c.WakeNext, c.node.Path)\n",
		new: "\tc.WakeNext()\n\tif queued == nil {\n\t\treturn c.s.Primitives().Discard(c.WakeNext, c.node.Path)\n",
	},
	{
		name: "a holder with guarded writes tells its neighbour before its node is gone", file: "locks/lock.go",
		test: "TestNextHolderWritesBehindLateGuardedWrites|TestNextHolderWaitsForARefusedDeletion",
		old:  "if lease.guarded.Load() {",
		new:  "if lease.guarded.Load() && false {",
	},
	{
		name: "a try believes a lagging server", file: "internal/waitline/line.go", pkg: "./locks",
		test: "TestTryLockAfterAReleaseBehindALaggingServer",
		old:  "if errors.Is(err, ErrNotAcquired) { // the",
		new:  "if errors.Is(err, ErrNotAcquired) && false { // the",
	},
	{
		name: "a try writes before it fails", file: "internal/waitline/line.go", pkg: "./locks",
		test: "TestAFailedTryWritesNothing",
		old:  "SyncForWatch(ctx, l.dir, false)",
		new:  "SyncForWatch(ctx, l.dir, true)",
	},
	{
		name: "who revokes or evicts believes a lagging server", file: "internal/recipe/synced.go", pkg: "./locks",
		test: "TestRevokeAndEvictBehindALaggingServer",
		old:  "return s.Sync(ctx, path) })",
		new:  "return nil })",
	},
	{
		name: "a throttled watch on the predecessor ends the wait", file: "internal/waitline/line.go", pkg: "./locks",
		test: "TestThrottledWatchKeepsPlaceInLine",
		old:  "c.watchAgain(ctx, predecessor, event.Err)", new: "event.Err",
	},
	{
		name: "a throttled watch on the second predecessor ends the wait", file: "internal/waitline/line.go",
		pkg: "./locks", test: "TestThrottledWatchKeepsPlaceInLine",
		old: "c.watchAgain(ctx, second, event.Err)", new: "event.Err",
	},
	{
		name: "a holder whose node was deleted hands its place on", file: "locks/lock.go",
		test: "TestDeletedHolderWakesNoNeighbour",
		old:  "if errors.Is(lease.Err(), framework.ErrNodeGone) {",
		new:  "if false {",
	},
	{
		name: "a waiter for permits whose node was deleted hands its place on", file: "locks/semaphore.go",
		test: "TestDeletedSemaphoreWaiterWakesNoNeighbour|TestDeletedSemaphoreWaiterThatGivesUpWakesNoNeighbour",
		old:  "\t\t\t\tc.Unlink()\n",
		new:  "",
	},
	{
		name: "the node ahead of one that may be replaced is watched", file: "internal/waitline/line.go",
		old: "if v.blockers == 1 || c.mayBeReplaced(v.predecessor) {",
		new: "if v.blockers == 1 {",
		redundant: "an event of the node further ahead makes the contender look again, which costs a list and " +
			"changes nothing",
	},
	{
		name: "a waiter that loses its place again and again does not pause", file: "internal/recipe/session.go",
		pkg: "./locks", test: "TestWaiterPausesWhenItsNodeIsDeletedRepeatedly",
		old: "if pauses.Wait(ctx, began) != nil {",
		new: "if _ = pauses; ctx.Err() != nil || began.IsZero() {",
	},
	{
		name: "a contender that fails leaves its node", file: "internal/waitline/line.go", pkg: "./locks",
		test: "TestAPanicOfTheQueuedFunctionLeavesNoNode",
		old:  "\t\tif !ok {\n",
		new:  "\t\tif false && !ok {\n",
	},
	{
		name: "a contender that leaves while the line is listed fails the list", file: "internal/waitline/list.go",
		test: "TestContendersThatLeaveWhileTheLineIsListedAreLeftOut",
		old:  "		if errors.Is(node.Err, framework.ErrNoNode) {\n", new: "		if false {\n",
	},
	{
		name: "a try does not look before it joins", file: "internal/waitline/line.go", pkg: "./locks",
		test: "TestLockAndRelease",
		old:  "\terr := l.checkVacant(ctx, s)\n",
		new:  "\terr := ctx.Err()\n",
	},
	{
		name: "the servers' own directory may be a lock", file: "internal/recipe/arguments.go", pkg: "./locks",
		test: "TestBadInput",
		old:  "if full == serverDirectory || ",
		new:  "if ",
	},
	{
		name: "an ask that has ended keeps its session awake", file: "internal/waitline/line.go",
		test: "TestEndedContendersLetSessionSleep",
		old:  "\tif ctx.Err() == nil {\n\t\tc.s.Primitives().BeginJoin()",
		new:  "\tif true {\n\t\tc.s.Primitives().BeginJoin()",
	},
	{
		name: "the next in line sleeps", file: "internal/waitline/line.go", pkg: "./internal/proof/idle",
		test: "TestTheNextInLineIsGrantedAtOnce",
		old:  "if v.blockers == 1 && !keepsAwake {",
		new:  "if v.blockers == 1 && !keepsAwake && false {",
	},
	// Neighbours of one session.
	{
		name: "whoever leaves lets the next one in", file: "internal/waitline/localwaiters.go", pkg: "./locks",
		test: "TestTwoReadersInAWritersPlaceKeepAWriterOut",
		old:  "\tcase w.first:\n",
		new:  "\tcase true:\n",
	},
	{
		name: "contenders of a deleted directory stay neighbours of those in the new one",
		file: "internal/waitline/localwaiters.go", pkg: "./locks",
		test: "TestContendersOfTwoDirectoriesAreNoNeighbours|TestAWaiterOfADeletedDirectoryJoinsNoNeighboursOfTheNext",
		old:  "\t\tws.unlinkAll()\n",
		new:  "",
	},
	{
		name: "a contender of a deleted directory is added late", file: "internal/waitline/localwaiters.go",
		test: "TestContendersOfADeletedDirectoryAreUnlinked",
		old:  "\t\tw.unlinked = true\n\t\treturn\n",
		new:  "\t\tw.unlinked = true\n",
	},
	{
		name: "a reader becomes the neighbour of a writer that has left", file: "internal/waitline/localwaiters.go",
		test: "TestReaderIsNotLinkedToWriterThatHasGone",
		old:  "\tif writer.left || writer.unlinked {\n\t\treturn false\n\t}\n",
		new:  "",
	},
	{
		name:      "a writer is not found by its number again when its reader has left",
		file:      "internal/waitline/localwaiters.go",
		old:       "\t\t\tws.bySeq[p.position.Seq] = p\n",
		new:       "\t\t\t_ = p\n",
		redundant: "whoever comes next is no neighbour then, and lists and watches by itself",
	},
	{
		name: "a list that has begun serves who asks later", file: "internal/waitline/sharedlist.go",
		old: "\tsl.wanted, sl.running = nil, l != nil",
		new: "\tsl.running = l != nil\n\tif l != nil {\n\t\tselect {\n\t\tcase <-l.done:\n\t\t\tsl.wanted, " +
			"sl.running, l = nil, false, nil\n\t\tdefault:\n\t\t}\n\t}",
		redundant: "requests of a session are answered in order: a list that is under way when a create was " +
			"answered was sent behind it; what it shows and is gone is watched, and looked at again",
	},
	// A contender that is proven to be alone.
	{
		name: "lone: the number is not compared", file: "internal/waitline/uncontended.go", pkg: "./locks",
		test: "TestWaiterBetweenLocksOfOneClientIsNotOvertaken",
		old:  " && p.Seq == h.seq+1",
		new:  "",
	},
	{
		name: "lone: the transaction is not compared", file: "internal/waitline/uncontended.go", pkg: "./locks",
		test: "TestNextNumberAloneIsNotUncontended",
		old:  " && created == h.deleted+1",
		new:  "",
	},
	{
		name: "lone: the session is not compared", file: "internal/waitline/uncontended.go",
		test: "TestUncontendedHintNeedsTheNextNumberTransactionAndSession",
		old:  " && session == h.session",
		new:  "",
	},
	{
		name: "lone: readers prove it too", file: "internal/waitline/uncontended.go", pkg: "./locks",
		test: "TestReleasedReaderIsNotUncontended",
		old:  "if p.Kind.Family() == Write {",
		new:  "if false {",
	},
	{
		name: "lone: an older deletion is remembered", file: "internal/waitline/uncontended.go",
		old:       "if zxid > h.deleted {",
		new:       "if zxid != 0 {",
		redundant: "any deletion proves as much together with its own number; an older one only does so less often",
	},
	// Leases.
	{
		name: "the node is given back before the context ends", file: "locks/lease.go",
		test: "TestTheFormerContextIsDoneAtTheGrant",
		old:  "\tif l.hold != nil {\n\t\tl.hold.End(cause)",
		new: "\tl.release = l.giveBack(written)\n\tl.giveBack = giveBackNothing\n\tif l.hold != nil " +
			"{\n\t\tl.hold.End(cause)",
	},
	{
		name: "a guard asks only this process", file: "locks/lease.go",
		test: "TestALateGuardedWriteIsRefusedByTheServers",
		old:  "return primitives.When(framework.CheckOp(cmp.Or(l.fence, l.node), framework.AnyVersion), l.Err)",
		new:  "return primitives.When(framework.CheckOp(cmp.Or(\"/\", l.fence), framework.AnyVersion), l.Err)",
	},
	{
		name: "a guard asks only the servers", file: "locks/lease.go",
		test: "TestEndOfForgottenLeaseIsLogged|TestALeaseUsedAfterItsEnd",
		old:  "return primitives.When(framework.CheckOp(cmp.Or(l.fence, l.node), framework.AnyVersion), l.Err)",
		new:  "return framework.CheckOp(cmp.Or(l.fence, l.node), framework.AnyVersion)",
	},
	{
		name: "a claim's guard checks the node that all holders share", file: "locks/lease.go",
		test: "TestALateGuardedWriteIsRefusedByTheServers",
		old:  "framework.CheckOp(cmp.Or(l.fence, l.node), framework.AnyVersion)",
		new:  "framework.CheckOp(cmp.Or(l.node, l.fence), framework.AnyVersion)",
	},
	{
		name: "a guarded turn is passed on", file: "locks/handoff.go",
		test: "TestALateGuardedWriteIsRefusedByTheServers",
		old:  "node.Err() == nil && !guarded && ",
		new:  "node.Err() == nil && (guarded || true) && ",
	},
	{
		name: "the time left does not know the greatest hold", file: "locks/lease.go",
		test: "TestTheTimeLeftKnowsTheGreatestHold",
		old:  "left = min(left, max(0, time.Until(expires)))", new: "_ = expires",
	},
	{
		name: "the greatest hold of a part begins before the whole", file: "locks/lease.go",
		test: "TestMaxHoldOfPartStartsWithMulti",
		old:  "!afterAllHeld(l.Context(), func() {",
		new:  "!func(context.Context, func()) bool { return false }(l.Context(), func() {",
	},
	{
		name: "the greatest hold ends the context only", file: "locks/lease.go",
		old:       "l.limit = time.AfterFunc(maxHold, func() { l.endLease(ErrMaxHold) })",
		new:       "l.limit = time.AfterFunc(maxHold, func() { l.life.End(ErrMaxHold) })",
		redundant: "a lease whose context was ended by anybody gives back what it has",
	},
	{
		name: "a lease whose context has ended keeps its node", file: "locks/lease.go",
		test: "TestALostPermitGivesTheOthersBack",
		old:  "l.unwatch = context.AfterFunc(l.Context(), func() { l.endLease(nil) })",
		new:  "l.unwatch = func() bool { return true }",
	},
	{
		name: "an ended lease's context still holds", file: "internal/waitline/held.go", pkg: "./locks",
		test: "TestAClaimsOwnContextIsRefused|TestANestedHoldHasItsOwnEnd|TestATurnIsGivenUpWithItsContext",
		old:  "if h == nil || h.Err() != nil {",
		new:  "if h == nil {",
	},
	{
		name: "a lease carries the span of the ask", file: "locks/lease.go",
		test: "TestWorkUnderALeaseBelongsToTheCallersSpan",
		old:  "l.session.Primitives().Hold(leaseContext{waitline.CallerContext(ctx), l}",
		new:  "l.session.Primitives().Hold(leaseContext{ctx, l}",
	},
	{
		name: "Do does not tell of a loss", file: "locks/locker.go", test: "TestDoTellsOfALossInside",
		old: "lost != nil && !errors.Is(err, lost)",
		new: "lost != nil && !errors.Is(err, lost) && false",
	},
	{
		name: "a holder that watches its node does not heed its end", file: "locks/revoke.go",
		test: "TestListeningHolderNoticesDeletedNodeAtOnce",
		old:  "l.loseNodes(fmt.Errorf(\"%w: %s\", framework.ErrNodeGone, node))",
		new:  "_ = fmt.Errorf(\"%w: %s\", framework.ErrNodeGone, node)",
	},
	{
		name: "a writer goes on as a reader without its guard", file: "internal/waitline/line.go", pkg: "./locks",
		test: "TestWriterWithDeletedNodeIsNotDowngraded",
		old:  "Unnumbered: true, With: []framework.Op{guard},",
		new:  "Unnumbered: true,",
	},
	// Several locks.
	{
		name: "several locks are asked for in any order", file: "locks/multi.go", test: "TestAMultiLocksOrder",
		old: "return cmp.Compare(a.Path(), b.Path())", new: "return cmp.Compare(0, 0*len(a.Path()+b.Path()))",
	},
	{
		name: "several: a part that has lapsed is not looked at at last", file: "locks/multi.go",
		test: "TestLapsedPartOfMultiIsAcquiredAgain",
		old:  "\t\tif p.Err() != nil {\n",
		new:  "\t\tif false {\n",
	},
	{
		name: "several: it asks on though a part has ended", file: "locks/multi.go",
		test: "TestASessionLostInTheMiddleBeginsAgain",
		old:  "func() { cancel(&partLostError{lease}) }",
		new:  "func() {}",
	},
	{
		name: "several: a part that is lost again and again is asked for without a pause", file: "locks/multi.go",
		test: "TestMultiPausesWhenPartIsLostRepeatedly",
		old:  "pauses.Wait(ctx, began) == nil",
		new:  "ctx.Err() == nil && !began.IsZero()",
	},
	{
		name: "several: the first part's token", file: "locks/multi.go", test: "TestTheTokenOfSeveralIsTheHighest",
		old: "lease.token = max(lease.token, p.token)",
		new: "lease.token = first.token",
	},
	{
		name: "several: the whole goes on for a moment behind a part's end", file: "internal/lifetime/lifetime.go",
		pkg: "./framework", test: "TestLifetimesEndTogether",
		old: "	for _, d := range dependents {\n		_ = d.end(cause)\n	}", new: "	_ = dependents",
	},
	// Claims.
	{
		name: "claim: another's node is not noticed", file: "locks/claim.go", test: "TestClaimTakenOverEndsItsRun",
		old: "err == nil && st.Czxid != node.Zxid", new: "err == nil && st.Czxid == 0",
	},
	{
		name: "claim: its node tells what became of a create without a reply", file: "locks/claim.go",
		test: "TestClaimWhoseReplyIsLostLeavesNoFence",
		old:  "Dir: dir, Name: name + \"-hold\", Unnumbered: true,",
		new:  "Dir: dir, Name: name + \"-hold\", Plain: true, Unnumbered: true,",
	},
	{
		name: "claim: it waits for a directory", file: "locks/claim.go", test: "TestAClaimOfADirectoryIsRefused",
		old: "if st.EphemeralOwner == 0 {", new: "if false {",
	},
	// Semaphores.
	{
		name: "semaphore: the number's version is not checked", file: "locks/semaphore.go",
		test: "TestPermitsAreTakenAtTheirPresentNumber",
		old:  "framework.CheckOp(s.limit.node, p.version)",
		new:  "framework.CheckOp(s.limit.node, 0*p.version+framework.AnyVersion)",
	},
	{
		name: "semaphore: the record may be another one", file: "locks/permitlimit.go",
		test: "TestPermitsOfAReplacedRecord",
		old:  "if czxid != p.created {",
		new:  "if false {",
	},
	{
		name: "semaphore: one too many at once", file: "locks/semaphore.go",
		test: "TestBothFinishAcrossARestart|TestPermitsAreGrantedInOrder",
		old:  "	if len(names)+n <= p.Permits {\n		return p, nil\n",
		new:  "	if len(names)+n <= p.Permits+1 {\n		return p, nil\n",
	},
	{
		name: "semaphore: one too many behind a wait", file: "locks/semaphore.go",
		test: "TestBothFinishAcrossARestart|TestPermitsAreGrantedInOrder",
		old:  "	if len(names)+n <= p.Permits {\n		return p, true, nil\n",
		new:  "	if len(names)+n <= p.Permits+1 {\n		return p, true, nil\n",
	},
	{
		name: "semaphore: a lost place is taken for a refusal", file: "locks/semaphore.go",
		test: "TestPermitWaiterWithDeletedNode",
		old:  "\t\t\treturn nil, waitline.ErrPlaceLost\n\t\tdefault:",
		new:  "\t\t\treturn nil, err\n\t\tdefault:",
	},
	{
		name: "semaphore: a disagreement is not told", file: "locks/permitlimit.go",
		test: "TestMembersAgreeOnTheNumber",
		old:  "if err == nil && l.declared != p.Declared && l.declared != p.Permits {",
		new:  "if false {",
	},
	// Slices.
	{
		name: "slice: who gives up leaves its turn to nobody", file: "locks/handoff.go",
		test: "TestSliceIsNotPassedToCancelledWaiter",
		old:  "\t\tcase o.lease != nil:\n\t\t\to.lease.endLease(ErrReleased)\n",
		new:  "\t\tcase o.lease != nil:\n",
	},
	{
		name: "slice: it has no end", file: "locks/handoff.go", test: "TestASliceEndsInTime",
		old: "time.Now().Before(h.until)",
		new: "!h.until.IsZero()",
	},
	{
		name: "slice: an ended node's turn goes on", file: "locks/handoff.go", test: "TestALostSliceEndsItsTurn",
		old: "\t\tcurrent.endLease(nil)\n",
		new: "\t\t_ = current\n",
	},
	{
		name: "slice: the place is lost with the first that waits", file: "locks/handoff.go",
		test: "TestASliceKeepsItsPlaceInTheLine",
		old:  "withoutHeldLocks(context.WithoutCancel(first.ctx))",
		new:  "withoutHeldLocks(first.ctx)",
	},
	{
		name: "slice: an ask that nobody waits for goes on", file: "locks/handoff.go",
		test: "TestSliceWithoutWaitersLeavesTheLine",
		old:  "\tif h.waiting.Len() == 0 && h.stopAcquiring != nil {\n\t\th.stopAcquiring()\n\t}\n",
		new:  "",
	},
	// The rest of what was once taken out by hand.
	{
		name: "a reader lets the writer behind it in", file: "internal/waitline/localwaiters.go", pkg: "./locks",
		test: "TestTwoReadersInAWritersPlaceKeepAWriterOut",
		old:  "w.position.Kind.IsShared() && n.position.Kind.IsShared() && !n.granted",
		new:  "w.position.Kind.IsShared() && !n.granted",
	},
	{
		name: "two readers in one place are chained wrong", file: "internal/waitline/localwaiters.go", pkg: "./locks",
		test: "TestTwoReadersInAWritersPlaceKeepAWriterOut",
		old:  "for p.next != nil && p.next.position.Seq == p.position.Seq {",
		new:  "for p.next != nil && p.next == p {",
	},
	{
		name: "a reader comes before the writer of its number", file: "internal/waitline/position.go", pkg: "./locks",
		test: "TestInspectReadersAndWriters",
		old:  "-cmp.Compare(a.Kind, b.Kind)",
		new:  "cmp.Compare(a.Kind, b.Kind)",
	},
	{
		name: "a reader in a writer's place has a token of its own", file: "locks/lock.go",
		test: "TestNestedWriterDowngradesToReader",
		old:  "return l.newLeaseInLine(ctx, c, writer.token)",
		new:  "return l.newLeaseInLine(ctx, c, c.Node().Zxid)",
	},
	{
		name: "claim: a released claim deletes the node by its name", file: "locks/claim.go",
		test: "TestALostReplyOfAReleaseLeavesTheNextClaimAlone",
		old:  "return m.s.Primitives().DiscardOwn(queued, node.Created, node.fence)",
		new:  "return m.s.Primitives().Discard(queued, node.Path, node.fence)",
	},
	{
		name: "semaphore: who has permits stays in line", file: "locks/semaphore.go",
		test: "TestBothFinishAcrossARestart|TestPermitsAreGrantedInOrder",
		old:  "framework.CheckOp(s.limit.node, p.version), framework.DeleteOp(c.Node().Path, framework.AnyVersion)}",
		new:  "framework.CheckOp(s.limit.node, p.version)}",
	},
	{
		name: "semaphore: a mixed directory is accepted", file: "locks/semaphore.go",
		test: "TestKindsOfOnePathRefuseEachOther",
		old:  "if err := s.checkUnmixed(ctx); err != nil {",
		new:  "if err := ctx.Err(); err != nil {",
	},
	{
		name: "slice: the turn is passed on within an ended node", file: "locks/handoff.go",
		old: "node != nil && node.Err() == nil && !guarded",
		new: "node != nil && !guarded",
		redundant: "a turn within an ended node has ended too, and its holder is told at once; without the look one " +
			"asker more is told so",
	},
	{
		name: "several: they are released in the order of their paths", file: "locks/multi.go",
		test: "TestAMultiLocksOrder",
		old:  "slices.Backward(parts)",
		new:  "slices.All(parts)",
	},
	{
		name: "several: the time left is that of the first", file: "locks/lease.go",
		test: "TestTheTimeLeftIsTheLeastOfAll",
		old:  "	for _, p := range l.parts {\n		left",
		new:  "	for _, p := range l.parts[:min(1, len(l.parts))] {\n		left",
	},
	{
		name: "guards name the first of several nodes", file: "locks/lease.go", test: "TestGuardsNameEachNode",
		old: "for _, node := range l.nodes {", new: "for _, node := range l.nodes[:min(1, len(l.nodes))] {",
	},
	{
		name: "a request to release is seen on the first of several nodes alone", file: "locks/revoke.go",
		test: "TestEachNodeOfALeaseIsListenedTo",
		old:  "go part.watchForRevocation(l.Context(), node, tell)",
		new:  "_ = node\n\t\t\tgo part.watchForRevocation(l.Context(), part.node, tell)",
	},
	{
		name: "a node that was replaced is evicted", file: "locks/revoke.go",
		old:  "if err == nil && st.Czxid != token {",
		new:  "if false {",
		test: "TestANodeIsEvictedAsItWasSeen",
	},
	{
		name: "a list goes on for ever", file: "locks/list.go",
		old:  "case l.looked == most:",
		new:  "case false:",
		test: "TestListReportsOmittedNodes",
	},
	{
		name: "a list reads the items of queues", file: "locks/list.go", test: "TestAListDoesNotReadTheItemsOfAQueue",
		old: "queueItems: isQueue && recipe.HoldsQueueItems(names[n])",
		new: "queueItems: isQueue && recipe.HoldsQueueItems(names[n]) && false",
	},
	{
		name: "a list takes a lock for a queue's items by its name", file: "locks/list.go",
		test: "TestAListDoesNotReadTheItemsOfAQueue",
		old:  "next.queueItems && i.report.Kind == NoLock",
		new:  "next.queueItems",
	},
	// Revocation.
	{
		name: "a request to release overwrites the owner's record", file: "locks/owner.go",
		test: "TestARevokedHolderIsStillKnown",
		old:  "	case !ok:\n		return revokeMark",
		new:  "	case !ok || len(data) > 0:\n		return revokeMark",
	},
	{
		name: "other libraries do not get Curator's mark", file: "locks/owner.go",
		test: "TestOtherLibrariesGetCuratorsMark",
		old:  "	case !ok:\n		return revokeMark",
		new:  "	case !ok:\n		return append(bytes.Clone(data), revokeMark...)",
	},
	{
		name: "an owner's record that Curator has overwritten is lost", file: "locks/revoke.go",
		test: "TestAnOverwrittenOwnerIsWrittenBack",
		old:  "if o.record != nil && o.zxid == st.Czxid &&", new: "if false && o.zxid == st.Czxid &&",
	},
	{
		name: "an owner's record is written into another client's node", file: "locks/revoke.go",
		old: "if o.record != nil && o.zxid == st.Czxid &&", new: "if o.record != nil &&",
		redundant: "the claim's own watch ends the hold, and with it the write; only a watch of Revoked that is " +
			"faster needs it",
	},
	// Deadlocks.
	{
		name: "deadlocks: a cycle counts before its asks have confirmed it", file: "locks/askgraph.go",
		test: "TestAStaleAskCausesNoAlarm",
		old:  "if a.Seen >= completed || waitsNow && a == me {",
		new:  "if a.Seen >= completed || true {",
	},
	{
		name: "deadlocks: held nodes are compared by their paths", file: "locks/askgraphread.go",
		test: "TestRecreatedClaimIsNoDeadlock",
		old:  "return stats[h.Node].Czxid != h.Zxid",
		new:  "return stats[h.Node].Czxid == 0",
	},
	{
		name: "deadlocks: the eldest fails", file: "locks/askgraph.go", test: "TestTheYoungestAskOfADeadlockFails",
		old: "cmp.Compare(a.number, b.number))\n}\n\nfunc compareBool",
		new: "cmp.Compare(b.number, a.number))\n}\n\nfunc compareBool",
	},
	{
		name: "semaphore: a resize beside another one fails", file: "locks/permitlimit.go",
		test: "TestResizeBesideAnother",
		old:  "// been set just before\n\t\t\t\treturn nil\n",
		new:  "// been set just before\n\t\t\t\treturn err\n",
	},
	{
		name: "semaphore: a resize by a member with the number of the former one fails", file: "locks/permitlimit.go",
		test: "TestResizeByAMemberWithTheNumberBeforeAnotherResize",
		old:  "if err != nil && !(errors.Is(err, ErrPermits) && p.created == accepted) {",
		new:  "if _ = accepted; err != nil {",
	},
	{
		name: "semaphore: a resize ignores that another record has taken the place", file: "locks/permitlimit.go",
		test: "TestResizeByAMemberWithTheNumberBeforeAnotherResize",
		old:  "if err != nil && !(errors.Is(err, ErrPermits) && p.created == accepted) {",
		new:  "if err != nil && !(errors.Is(err, ErrPermits) && accepted != 0) {",
	},
	{
		name: "semaphore: a resize does not look whether its lost reply was a success", file: "locks/permitlimit.go",
		test: "TestResizeByAMemberWithTheNumberBeforeAnotherResize",
		old:  "if failed != nil && !errors.Is(failed, ErrPermits) {", new: "if failed != nil {",
	},
	{
		name: "deadlocks: all asks fail", file: "locks/ask.go", test: "TestTheYoungestAskOfADeadlockFails",
		old: "len(certain) > 0 && g.youngestAsk(certain) == me {",
		new: "len(certain) > 0 {",
	},
	{
		name: "deadlocks: an ask that only stands in line may fail", file: "locks/askgraph.go",
		test: "TestAskThatHoldsNothingOfADeadlockDoesNotFail",
		old:  "if g.waitsForHolder(a, b) != 0 {\n\t\t\t\tawaited[b] = true",
		new:  "if a != nil {\n\t\t\t\tawaited[b] = true",
	},
	{
		name: "deadlocks: one stuck holder of permits is enough", file: "locks/askgraph.go",
		test: "TestAPermitOfAnotherHolderIsAWayOut",
		old:  "permits-len(taken) < a.Permits",
		new:  "len(taken) > 0",
	},
	{
		name: "deadlocks: what others claim to hold is as good as one's own", file: "locks/askgraph.go",
		test: "TestAWrongRecordHarmsNoOthers",
		old:  "compareBool(a.carried, b.carried), ",
		new:  "",
	},
	{
		name: "deadlocks: a reader waits for no reader", file: "locks/askgraph.go",
		test: "TestDeadlockOfReaderWaitingBehindWriter",
		old:  "if holder.Blocks(w.Position) && w.Blocks(place) {",
		new:  "if false && holder.Blocks(w.Position) && w.Blocks(place) {",
	},
	{
		name: "deadlocks: parts of a multi-lock are not held yet", file: "locks/multi.go",
		test: "TestPartsOfAMultiLockAreHeldMeanwhile",
		old:  "holding = withHeldLocks(holding, lease.standingNodes)",
		new:  "_ = withHeldLocks(holding, lease.standingNodes)",
	},
	{
		name: "deadlocks: the record stays", file: "locks/ask.go", test: "TestTheYoungestAskOfADeadlockFails",
		old: "defer s.Primitives().Discard(nil, node.Path)",
		new: "_ = node.Path",
	},
	{
		name: "deadlocks: a refused record is not tried again", file: "locks/ask.go",
		test: "TestRefusedAskRecordIsTriedAgain",
		old:  "if errors.Is(err, framework.ErrNoAuth) || pauses.Wait",
		new:  "if err != nil || pauses.Wait",
	},
	{
		name: "deadlocks: an ask is recorded at once", file: "locks/ask.go",
		test: "TestShortWaitRecordsNoDeadlockEntry",
		old:  "time.AfterFunc(recordAfter,",
		new:  "time.AfterFunc(0,",
	},
	{
		name: "deadlocks: a record that was deleted is not missed", file: "locks/asksearch.go",
		test: "TestLostAskRecordIsCreatedAgain",
		old:  "errors.Is(nodes[i].Err, framework.ErrNoNode)",
		new:  "false && errors.Is(nodes[i].Err, framework.ErrNoNode)",
	},
	{
		name: "deadlocks: each ask of a session reads for itself", file: "locks/ask.go",
		test: "TestAsksOfASessionShareTheirLooks",
		old:  "search := askSearchOf(s, root)\n\tdefer search.leave()",
		new:  "search := &askSearch{s: s, root: root}",
	},
	{
		name: "deadlocks: looks are not bounded", file: "locks/asksearch.go", test: "TestASessionsLooksAreBounded",
		old: "max(look.pause, time.Duration(l.requests)*time.Second/askRequestsPerSecond)",
		new: "max(look.pause, time.Duration(l.requests)*0/askRequestsPerSecond)",
	},
	{
		name: "deadlocks: a wrong list of an ask that only reports fails another ask", file: "locks/askgraph.go",
		test: "TestAWrongRecordThatOnlyReportsHarmsNoOthers",
		old:  "compareBool(a.carried, b.carried), compareBool(!a.Report, !b.Report), ",
		new:  "compareBool(!a.Report, !b.Report), compareBool(a.carried, b.carried), ",
	},
	{
		name: "deadlocks: an ask that only reports is taken for one that fails", file: "locks/askgraph.go",
		test: "TestDeadlockModes",
		old:  "compareBool(!a.Report, !b.Report), ",
		new:  "",
	},
	{
		name: "deadlocks: a turn is passed on to other processes", file: "locks/heldlocks.go",
		test: "TestATurnIsNotCarried",
		old:  "return h.turn > 0 })",
		new:  "return h.turn < 0 })",
	},
}
