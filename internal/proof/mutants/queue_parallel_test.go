package mutants

func init() { lists["queue_parallel"] = queueParallelMutants }

// queueParallelMutants are the safeguards of the parallel order of package queue.
var queueParallelMutants = []mutant{
	{
		name: "a poll does not look for items of dead consumers", file: "queue/trytake.go",
		test: "TestTryTakeFindsItemsOfDeadConsumers",
		old:  "\t\tn = state.countItems()\n", new: "\t\tn = state.countUnclaimed()\n",
	},
	{
		name: "a call joins the line before it has looked", file: "queue/consumer.go",
		test: "TestTryTakeOfEmptyQueueCreatesNoNode",
		old:  "if err := c.lookBeforeJoining(ctx); err != nil {", new: "if err := ctx.Err(); err != nil {",
	},
	{
		name: "the sweep stops at a closed segment without items", file: "queue/recoverer.go",
		test: "TestItemsOfDeadConsumerComeBackBehindEmptyClosedSegment",
		old:  "if in.drawn == 0 && (!in.closed || in.hasItems) {", new: "if in.drawn == 0 {",
	},
	{
		name: "the sweep stops at a segment that a purge has emptied", file: "queue/recoverer.go",
		test: "TestItemsOfDeadConsumerComeBackBehindEmptyClosedSegment",
		old:  "if in.drawn == 0 && (!in.closed || in.hasItems) {",
		new:  "if in.drawn == 0 && (!in.closed || in.put > 0) {",
	},
	{
		name: "items are returned whose tickets are there", file: "queue/recoverer.go",
		test: "TestItemOfDeadConsumerComesBack|TestNoItemIsLostUnderFaults",
		old:  "if k < in.drawn && in.tickets[k] == \"\" {", new: "if k < in.drawn {",
	},
	{
		name: "the recoverer hears of no ticket that an operator has deleted", file: "queue/claimeditem.go",
		test: "TestItemComesBackAfterItsTicketWasDeleted",
		old:  "framework.AnyVersion)}),\n\t\t\tc.newRequest([]framework.Op{c.session",
		new:  "framework.AnyVersion), c.session",
	},
	{
		name: "who leaves the line is not noticed", file: "queue/recoverer.go",
		test: "TestRecovererNoticesDeadConsumer",
		old:  "sweep = r.hasDeparted(line) || sweep", new: "_ = r.hasDeparted(line)",
	},
	{
		name: "who comes and goes between two looks at the line is not noticed", file: "queue/recoverer.go",
		test: "TestConsumerThatCameAndDiedDuringSweepIsNoticed",
		old:  "r.departed = childrenEver(line) - int64(line.NumChildren)\n\treturn r.departed != before",
		new:  "r.departed = -int64(line.NumChildren)\n\treturn r.departed > before",
	},
	{
		name: "missing numbers stay at the head", file: "queue/recoverer.go",
		test: "TestMissingNumberBehindAWaitingTicketIsVoided|TestTicketsBeyondLaneItemsAreVoided",
		old:  "if err := r.voidNumbers(in, in.put, head); err != nil {",
		new:  "if err := r.voidNumbers(in, head, head); err != nil {",
	},
	{
		name: "missing numbers behind waiting tickets are forgotten", file: "queue/recoverer.go",
		test: "TestMissingNumberIsWatchedAfterReconnect|TestMissingNumberBehindAWaitingTicketIsVoided",
		old:  "r.tasks.Start(func() { r.watchFor(ctx, itemID{in.at, next}) })", new: "_ = ctx",
	},
	{
		name: "idle consumers are not woken for a lane", file: "queue/recoverer.go",
		test: "TestPriorityItemWakesIdleConsumer",
		old:  "\treturn r.voidNumbers(in, in.put, end)\n", new: "\treturn r.voidNumbers(in, end, end)\n",
	},
	{
		name: "others are woken for the same items", file: "queue/recoverer.go",
		test: "TestPriorityItemsWakeOneConsumerEach",
		old:  "if unclaimed == 0 || read == r.wokenForRead {", new: "if unclaimed == 0 || read < 0 {",
	},
	{
		name: "a move that was refused is not tried again", file: "queue/recoverer.go",
		test: "TestRecoveredItemKeepsAttempts",
		old:  "case errors.Is(err, framework.ErrBadVersion):\n				r.sweepAgain()",
		new:  "case errors.Is(err, framework.ErrBadVersion):",
	},
	{
		name: "an item for a ticket that had gone counts an attempt", file: "queue/recoverer.go",
		test: "TestItemForDepartedConsumerCountsNoAttempt|TestItemForDeadConsumerCountsNoAttempt",
		old:  "if missed[k] || st.Czxid >= in.changed {", new: "if false && missed[k] {",
	},
	{
		name: "an item that is put as its ticket is given up counts an attempt", file: "queue/recoverer.go",
		test: "TestItemPutAsItsTicketGoesCountsNoAttempt",
		old:  "st.Czxid >= in.changed", new: "st.Czxid > in.changed",
	},
	{
		name: "an item that comes as its ticket is given up counts an attempt", file: "queue/parallel.go",
		test: "TestItemForGivenUpTicketCountsNoAttempt",
		old:  "if r := c.uncountRequest(); r != nil {", new: "if r := c.uncountRequest(); false && r != nil {",
	},
	{
		name: "who gives up a ticket tells nobody", file: "queue/parallel.go",
		test: "TestTicketGivenUpEarlyLosesNoItem|TestTicketIsGivenBackAfterTakeEnded",
		old:  "\tp.cs.writeRequests(&writeRequest{session: s, ops: notice})\n", new: "\t_ = notice\n",
	},
	{
		name: "an idle consumer does not ring again", file: "queue/parallel.go", test: "TestIdleConsumerSignalsAgain",
		old: "if !signalled && p.views.mayHaveUnclaimed() {", new: "if false && !signalled {",
	},
	{
		name: "the last items of a lane are drawn without a check", file: "queue/segmentviews.go",
		test: "TestLastLaneItemIsDrawnOnce",
		old:  "d.checked = lane.countUnclaimed() < int64(plentyFactor*v.window); d.checked",
		new:  "d.checked = false; d.checked",
	},
	{
		name: "a draw of many tickets is not divided", file: "queue/segmentviews.go", test: "TestManyClaimsAtOnce",
		old: "d := v.newDraw(&v.base, min(n, maxDrawn))", new: "d := v.newDraw(&v.base, n)",
	},
	{
		name: "a lane's next segment is told to nobody", file: "queue/segmentviews.go",
		test: "TestLaneItemsInSeveralSegmentsWakeAsManyConsumers",
		old:  "\tif d.signal {\n", new: "\tif false && d.signal {\n",
	},
	{
		name: "a lost reply of a draw is not looked up", file: "queue/parallel.go",
		test: "TestTicketIsFoundAfterLostReply|TestNackAfterLostReply",
		old:  "drawn, err = p.findTickets(d)", new: "err = framework.ErrSuspended",
	},
	{
		name: "a return is not tried without its draw", file: "queue/parallel.go",
		test: "TestNackAfterRedoSegmentWasRemoved",
		old:  "refused.Path == drawn && errors.Is(err, framework.ErrNoNode)",
		new:  "refused.Path == \"\" && drawn != \"\"",
	},
	{
		name: "the draw does not wait for the return that is tried again", file: "queue/parallel.go",
		test: "TestNackAfterRedoSegmentWasRemoved",
		old:  "\t\t\tp.cs.writeRequests(again)\n\t\t\treturn\n",
		new: "\t\t\tagain.then = then\n\t\t\tp.cs.writeRequests(again)\n\t\t\tp.drawAnswered(ctx, d, nil, " +
			"err)\n\t\t\treturn\n",
	},
	{
		name: "a consumer does not read the lanes after its own return", file: "queue/parallel.go",
		test: "TestReturnedItemComesNextBeforeItsSignal",
		old:  "\t\t\tp.views.invalidate() // this consumer's own", new: "\t\t\t// this consumer's own",
	},
	{
		name: "a returned item is kept though nobody takes", file: "queue/parallel.go",
		test: "TestUnwantedReturnedItemGoesBackSoon",
		old:  "case <-time.After(keepReturnedFor):", new: "case <-time.After(time.Hour):",
	},
	{
		name: "a segment that was closed by hand is the last", file: "queue/segments.go",
		test: "TestSegmentClosedByHandIsFollowedByNext",
		old: "\t_, err = session.Multi(ctx, append([]framework.Op{framework.CheckOp(s.dir(), " +
			"framework.AnyVersion)}, s.nextSegment().makeOps()...)...)",
		new: "\t_, err = session.Multi(ctx, framework.CheckOp(s.dir(), framework.AnyVersion))",
	},
	{
		name: "the number of items is not asked for again after the tickets", file: "queue/recoverer.go",
		test: "TestNumberUsedDuringSweepIsNotMissing",
		old:  "\tin.put, in.closed = childrenEver(st), st.Version > 0\n\tin.items, err",
		new:  "\t_ = st\n\tin.items, err",
	},
	{
		name: "tickets are counted after they were listed", file: "queue/recoverer.go",
		test: "TestTicketDrawnDuringSweepOwnsItsItem",
		old:  "\tst, err := r.s.Exists(r.ctx, at.dir())\n",
		new: "\tif late, failed := r.s.Exists(r.ctx, at.ticketDir()); failed == nil {\n\t\tin.drawn = " +
			"childrenEver(late)\n\t}\n\tst, err := r.s.Exists(r.ctx, at.dir())\n",
	},
	{
		name: "who is the recoverer no more skips numbers", file: "queue/recoverer.go",
		test: "TestFormerRecovererVoidsNoNumbers",
		old:  "requires: []precondition{leaseHeld{r.lease}}, ops: ops})", new: "ops: ops})",
	},
	{
		name: "numbers of a closed segment are skipped", file: "queue/recoverer.go",
		old:       "\t\tops := []framework.Op{in.at.checkOpen()}",
		new:       "\t\tops := []framework.Op{}",
		redundant: "a consumer reads that the segment is closed, and takes no number of it for used or unused any more",
	},
	{
		name: "a ticket is voided twice", file: "queue/recoverer.go", old: "framework.SetOp(ticket, nil, 0)",
		new:       "framework.SetOp(ticket, nil, framework.AnyVersion)",
		redundant: "who voids is the recoverer, has read its own voids, and its server has seen those of the one before",
	},
	{
		name: "an item that is returned beside a draw is not counted", file: "queue/parallel.go",
		pkg:  "./internal/proof/sim",
		test: "TestFormerlyFailingSeeds",
		old:  "\t\t\tp.views.countReturned(d.at)\n", new: "",
	},
}
