package mutants

func init() { lists["queue"] = queueMutants }

// queueMutants are the safeguards of package queue.
var queueMutants = []mutant{
	{
		name: "a returned item counts an attempt", file: "queue/claimeditem.go",
		test: "TestReturnedItemCountsNoAttempt",
		old:  "returnItem(c, c.attempt-1, 0, c.formerReason(), finished)",
		new:  "returnItem(c, c.attempt, 0, c.formerReason(), finished)",
	},
	{
		name: "work that failed comes again at once", file: "queue/work.go", test: "TestWorkPausesAfterFailures",
		old: "pause = w.pauses.delayAfter(d.Attempt, 0)", new: "_ = w.pauses",
	},
	{
		name: "refused requests are found one by one", file: "queue/writer.go", test: "TestRefusedPutsAreFoundTogether",
		old: "if refusals++; refusals < maxRefusals {", new: "if refusals++; refusals < 1000*maxRefusals {",
	},
	{
		name: "a put that needs an earlier one is refused", file: "queue/refusals.go",
		test: "TestPutThatNeedsAnEarlierOneIsNotRefused",
		old:  " && !earlier.mayAffect(tx.Path) {", new: " {",
	},
	{
		name: "a question about a put puts it", file: "queue/fence.go",
		test: "TestPutThatNeedsAnEarlierOneIsNotRefused",
		old:  "framework.CheckOp(f.marker, 0), framework.CheckOp(f.marker, 1)",
		new:  "framework.CheckOp(f.marker, framework.AnyVersion), framework.CheckOp(f.marker, framework.AnyVersion)",
	},
	{
		name: "requests that refuse each other are not halved", file: "queue/writer.go",
		test: "TestPutsThatRefuseEachOther",
		old:  "len(requests) == before && before > 1 {", new: "len(requests) == before && before > 1_000_000 {",
	},
	{
		name: "a delivery has no link to its put", file: "queue/telemetry.go", test: "TestConsumerSpanLinksToProducer",
		old: "\t\topts = append(opts, trace.WithLinks(trace.Link{SpanContext: producer}))\n", new: "\t\t_ = producer\n",
	},
	{
		name: "a strict consumer that leaves keeps the claims that nobody was handed", file: "queue/strict.go",
		test: "TestUndeliveredItemCountsNoAttempt",
		old:  "\th.uncountUnseen()\n",
		new:  "\t_ = h.uncountUnseen\n",
	},
	{
		name: "claims that are on their way are not waited for", file: "queue/strict.go",
		test: "TestClaimAfterTakeEndedCountsNoAttempt",
		old:  "\th.finishClaims()\n",
		new:  "\t_ = h.finishClaims\n",
	},
	{
		name: "work that took too long is acknowledged", file: "queue/work.go",
		test: "TestProcessingTimeoutIsFailedAttempt",
		old:  "		err = ended // instead of the handler's own error\n", new: "",
	},
	{
		name: "what a handler returns after the grace is believed", file: "queue/work.go", test: "TestWorkGraceEnds",
		old: "case errors.Is(ended, ErrDraining):", new: "case errors.Is(ended, ErrDraining) && err != nil:",
	},
	{
		name: "the grace does not end", file: "queue/work.go", test: "TestWorkGraceEnds",
		old: "		force()\n		cleanup", new: "		cleanup",
	},
	{
		name: "Work does not wait for its handlers", file: "queue/work.go", test: "TestWorkGraceEnds",
		old: "giveUp)()\n		<-drained\n", new: "giveUp)()\n",
	},
	{
		name: "a drain waits for its servers for ever", file: "queue/work.go", test: "TestWorkDrainEndsWithoutServers",
		old: "context.AfterFunc(cleanup, giveUp)()", new: "context.AfterFunc(cleanup, func() {})()",
	},
	{
		name: "Nack knows no policy", file: "queue/delivery.go", test: "TestRetryPolicyDelaysFailedAttempts",
		old: "	if after == 0 {\n", new: "	if after < 0 {\n",
	},
	{
		name: "fields of newer releases are dropped from the record", file: "queue/record.go",
		test: "TestRecordsKeepFieldsOfNewerReleases",
		old:  "return r.unknown.Encode(recordVersion, r)", new: "return json.Marshal(r)",
	},
	{
		name: "fields of newer releases are dropped from a strict queue's progress", file: "queue/progress.go",
		test: "TestRecordsKeepFieldsOfNewerReleases",
		old:  "p.unknown.Encode(progressVersion, p)", new: "recipe.Unknown(nil).Encode(progressVersion, p)",
	},
	{
		name: "a segment is made between others", file: "queue/segments.go",
		test: "TestNextSegmentIsMadeBehindTheLastOnly",
		old:  "len(segments) == 0 || segments[len(segments)-1] != s {", new: "len(segments) == 0 {",
	},
	{
		name: "a stray segment stays open", file: "queue/recoverer.go", test: "TestStraySegmentIsClosed",
		old: "if err == nil && !in.closed && i < len(segments)-1 {", new: "if err == nil && !in.closed && i < 0 {",
	},
	{
		name: "a purge ends beside an item that was given back again", file: "queue/purge.go",
		test: "TestPurgeRemovesItemsGivenBackAgain",
		old:  "return st.Cversion > 0, err", new: "return st.Cversion < 0, err",
	},
	{
		name: "a purge that does not finish says that it has", file: "queue/purge.go",
		test: "TestPurgeThatDoesNotFinishSaysSo",
		old:  "\treturn n, fmt.Errorf(\"%w: consumers have given",
		new:  "\treturn n, nil\n\treturn n, fmt.Errorf(\"%w: consumers have given",
	},
	{
		name: "a consumer does not look for cancelled items", file: "queue/consumersession.go",
		test: "TestCancelledItemIsNotDelivered",
		old:  "cancelled, err := cs.removeIfCancelled(c)", new: "cancelled, err := false, error(nil)",
	},
	{
		name: "a consumer does not hear of another cancelled item", file: "queue/cancelmarks.go",
		test: "TestCancelledItemIsNotDelivered|TestCancelRacesWithTake",
		old:  "case <-m.watch.C():\n\t\t\tm.watch = nil", new: "case <-m.watch.C():\n\t\t\treturn nil",
	},
	{
		name: "an item is cancelled though it was claimed before", file: "queue/cancel.go",
		test: "TestCancelRefusals|TestCancelRacesWithTake",
		old:  "\tif claimed {\n\t\treturn c.withdrawMark", new: "\tif claimed && false {\n\t\treturn c.withdrawMark",
	},
	{
		name: "an item that was removed with a lost reply is delivered", file: "queue/consumersession.go",
		test: "TestRemovalOfCancelledItemAfterLostReply",
		old:  "len(marks) == 0 && !unknown {", new: "len(marks) == 0 && (!unknown || unknown) {",
	},
	{
		name: "an item is removed though its cancel was withdrawn", file: "queue/consumersession.go",
		test: "TestWithdrawnCancelDelivers",
		old:  "ops = append(ops, framework.DeleteOp(mark, framework.AnyVersion))", new: "_ = mark",
	},
	{
		name: "another retry policy is let through", file: "queue/record.go", test: "TestRetryPolicyIsStored",
		old: "case given.Retry != nil && (", new: "case given.Retry != nil && given.Order == \"none\" && (",
	},
	{
		name: "a poll waits for what another consumer of a strict queue holds", file: "queue/strict.go",
		test: "TestTryTakeDoesNotWaitInStrictLine",
		old:  "\tcase !first:\n\t\treturn 0, false\n", new: "\tcase !first:\n\t\treturn state.countItems(), false\n",
	},
	{
		name: "a poll of a paused queue waits", file: "queue/trytake.go", test: "TestTryTakeTakesOnlyPresentItems",
		old: "if err != nil || state.paused {", new: "if err != nil {",
	},
	{
		name: "a pause hands out what was claimed ahead", file: "queue/takes.go", test: "TestPauseHoldsPrefetchedItems",
		old: " || !s.gate.isOpen() {",
		new: " {",
	},
	{
		name: "a lost delivery keeps its place in the window", file: "queue/consumersession.go",
		test: "TestLostDeliveryMakesRoom",
		old:  "\tc.settleWhenLost()\n\tif err",
		new:  "\tif err",
	},
	{
		name: "a delivery's context tells the end of its lock", file: "internal/lifetime/lifetime.go", pkg: "./queue",
		test: "TestADeliverysContextTellsItsOwnEndWhenItIsAskedForLate",
		old:  "	if l.cause != nil { // the parent may have",
		new:  "	if l.cause != nil && l.within.BareContext().Err() == nil { // the parent may have",
	},
	{
		name: "a put that was given up stays queued", file: "queue/writer.go", test: "TestWithdrawnPutsAreFreed",
		old: "\tw.queue = slices.DeleteFunc(w.queue, func(other *writeRequest) bool { return other == r })\n",
		new: "",
	},
	{
		name: "a reader has no bound in bytes", file: "queue/strictreader.go", test: "TestPrefetchIsBoundedInBytes",
		old: " && r.bytes.Load()+r.largest.Load() > int64(r.cs.settings.prefetchBytes)",
		new: " && false",
	},
	{
		name: "items that are due are moved one by one", file: "queue/housekeeping.go",
		test: "TestDueItemsAreMovedTogether",
		old:  "const moveBatch = 64",
		new:  "const moveBatch = 1",
	},
	{
		name: "who comes anew takes places before the line", file: "queue/capacity.go",
		test: "TestEmptyCapacityLineDoesNotBlockPuts",
		old:  "if c.lineMarked && !first {",
		new:  "if c.lineMarked && !first && false {",
	},
	{
		name: "places ahead lead past a batch that waits", file: "queue/capacity.go",
		test: "TestReservedPlacesDoNotOvertakeWaitingBatch",
		old:  "r.first || !putsWait",
		new:  "r.first || !putsWait || true",
	},
	{
		name: "places of dead writers stay", file: "queue/capacity.go", test: "TestPlacesOfDeadWritersAreRemoved",
		old: "if back = dead; free < n {",
		new: "if back = dead[:0]; free < n {",
	},
	{
		name: "a dead letter that comes back takes no place", file: "queue/inspect.go", test: "TestRequeueTakesAPlace",
		old: "&writeRequest{session: item.session, adds: 1, ops:", new: "&writeRequest{session: item.session, ops:",
	},
	{
		name: "what has ended is handed out", file: "queue/takes.go",
		test: "TestEndedDeliveryIsNotHandedOutAfterProcessPause",
		old:  "if item.hold.Err() != nil {", new: "if false {",
	},
	{
		name: "a claim that was refused counts an attempt", file: "queue/strict.go",
		test: "TestClaimRefusedAfterPurgeCountsNoAttempt",
		old:  "if !f.claimed && errors.As(err, &tx) {", new: "if false && errors.As(err, &tx) {",
	},
	{
		name: "a delivery ends after its item was given back", file: "queue/claimeditem.go",
		test: "TestNackEndsContextBeforeRedelivery",
		old:  "\tc.hold.End(ErrSettled) // before another consumer can have the item\n", new: "",
	},
	{
		name: "an item may be given back for longer than its directory's name allows", file: "queue/delivery.go",
		test: "TestNackForTooLongIsRefused",
		old:  "if after < 0 || after > maxDelay {", new: "if after < 0 {",
	},
	{
		name: "a queue that is being dropped is changed", file: "queue/admin.go",
		test: "TestChangeOfQueueBeingDroppedMakesItAnew",
		old:  "if before.Dropped {", new: "if false {",
	},
	{
		name: "an empty node becomes a queue only if it was never written", file: "queue/store.go",
		test: "TestEmptyNodeThatWasWrittenBecomesQueue",
		old:  "framework.SetOp(st.nodes.path, data, stat.Version))", new: "framework.SetOp(st.nodes.path, data, 0))",
	},
	{
		name: "a put that waits for room fails when the queue is dropped", file: "queue/putline.go",
		test: "TestPutsThatWaitForRoomGoIntoNewQueue",
		old:  "if errors.Is(err, framework.ErrNoNode) {", new: "if false {",
	},
	{
		name: "a closed client hides that an outcome is unknown", file: "queue/curatorqueue.go",
		test: "TestCuratorQueueClosedClientLeavesOutcomeUnknown",
		old:  " || errors.Is(err, framework.ErrOutcomeUnknown) {", new: " {",
	},
	{
		name: "a read-only call knows a queue that was dropped", file: "queue/store.go",
		test: "TestReadOnlyCallsAfterDropByOther",
		old:  "if err = f(s); !errors.Is(err, framework.ErrNoNode) {",
		new:  "if err = f(s); err != nil || !errors.Is(err, framework.ErrNoNode) {",
	},
}
