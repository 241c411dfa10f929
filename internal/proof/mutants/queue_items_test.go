package mutants

func init() { lists["queue_items"] = queueItemsMutants }

// queueItemsMutants are the safeguards of package queue about what belongs to an item.
var queueItemsMutants = []mutant{
	{
		name: "nobody hears of an item that was taken back", file: "queue/takeback.go",
		test: "TestServersRefuseWhatIsTakenBack",
		old:  "framework.AnyVersion), st.nodes.signalRecoverer())", new: "framework.AnyVersion))",
	},
	{
		name: "a claim that has ended, perhaps otherwise, counts as taken back", file: "queue/takeback.go",
		test: "TestTakeBackAfterLostReply",
		old:  "return fmt.Errorf(\"%w: the claim has ended, perhaps by this call\", ErrUnknown)", new: "return nil",
	},
	{
		name: "an item that is given back unseen forgets its error", file: "queue/parallel.go",
		test: "TestInspectAllShowsItemsThatFailAgainAndAgain",
		old:  "attempts, 0, c.formerReason(), func(error) { given() })",
		new:  "attempts, 0, nil, func(error) { given() })",
	},
	{
		name: "a look reads any number of items", file: "queue/retried.go",
		test: "TestASearchForReturnedItemsIsBounded",
		old:  "retriedReads-s.read, ", new: "",
	},
	{
		name: "a look reads any number of bytes", file: "queue/retried.go",
		test: "TestASearchForReturnedItemsIsBounded",
		old:  "(retriedBytes-s.bytes)/max(1, s.largest))", new: "retriedReads)",
	},
	{
		name: "the item that is due last is not read", file: "queue/retried.go",
		test: "TestInspectAllShowsDelayedItemsThatFailAgainAndAgain",
		old:  "	last := s.choose(dueLast, backwards)\n", new: "	last := 0\n",
	},
	{
		name: "an item is held since its ticket was drawn", file: "queue/heads.go",
		test: "TestInspectAllShowsTheItemThatIsHeldLongest",
		old:  "	if created.After(c.Since) {", new: "	if false {",
	},
	{
		name: "an item that is moved forgets when it was put", file: "queue/envelope.go",
		test: "TestHeadersAndPutTimeAreKept",
		old:  "if err == nil && e.header.Put == 0 {", new: "if false {",
	},
	{
		name: "a consumer changes the headers that are stored", file: "queue/queue.go",
		test: "TestHeadersAndPutTimeAreKept",
		old:  "Headers: maps.Clone(header.Headers)",
		new:  "Headers: func() map[string]string { _ = maps.Clone[map[string]string]; return header.Headers }()",
	},
	{
		name: "an acknowledgement whose own operation was refused stays settled", file: "queue/claimeditem.go",
		test: "TestAckWithIsAtomic",
		old:  "\tc.settled = nil\n", new: "",
	},
	{
		name: "a delivery that is open again is not watched", file: "queue/claimeditem.go",
		test: "TestReopenedDeliveryMakesRoomWhenLost",
		old:  "\tc.settled = nil\n\tc.mu.Unlock()\n\tc.settleWhenLost()\n", new: "\tc.settled = nil\n\tc.mu.Unlock()\n",
	},
	{
		name: "an item that is open again as its queue closes stays claimed", file: "queue/claimeditem.go",
		test: "TestAckWithRefusedAtCloseGivesItemBack",
		old:  "if c.session.ctx.Err() != nil {\n\t\tc.endAndReturn", new: "if false {\n\t\tc.endAndReturn",
	},
	{
		name: "a refused operation of one put fails others", file: "queue/request.go",
		test: "TestRefusedOpDoesNotFailOtherPuts",
		old:  "return refuseOnly(r, fmt.Errorf(\"%w: %w\", ErrRefused, own))",
		new: "return refusalHandling{fails: func(*writeRequest) bool { return true }, err: fmt.Errorf(\"%w: %w\", " +
			"ErrRefused, own)}",
	},
	{
		name: "a strict queue's guard does not know the claim", file: "queue/claimeditem.go",
		test: "TestGuardIsRefusedAfterRedelivery",
		old:  "primitives.When(framework.CheckOp(c.node, c.version), ",
		new:  "primitives.When(framework.CheckOp(c.node, framework.AnyVersion), ",
	},
	{
		name: "a strict queue's token stays", file: "queue/claimeditem.go",
		test: "TestTokensRiseWithEachDeliveryOfAnItem",
		old:  "return c.stat.Czxid + int64(c.version)", new: "return c.stat.Czxid",
	},
	{
		name: "an item that was claimed ahead does not expire", file: "queue/queue.go",
		test: "TestPrefetchedItemExpires|TestExpiredItemIsDeadLetter",
		old:  "if header.hasExpired(q.engine.store.clock.Now()) {", new: "if false {",
	},
	{
		name: "an item whose time is over counts an attempt", file: "queue/claimeditem.go",
		test: "TestExpiredItemIsDeadLetter",
		old:  "\tc.attempt--\n", new: "",
	},
	{
		name: "what was requeued expires again", file: "queue/inspect.go", test: "TestExpiredItemIsDeadLetter",
		old: "env.header.Error, env.header.TTL = 0, 0, \"\", 0", new: "env.header.Error = 0, 0, \"\"",
	},
	{
		name: "dead letters are removed before their time", file: "queue/housekeeping.go",
		test: "TestOldDeadLettersAreRemoved",
		old:  "Sub(d.store.clock.Now()); wait > 0 {", new: "Sub(d.store.clock.Now()); false {",
	},
	{
		name: "a producer does not hear of another capacity", file: "queue/capacity.go",
		test: "TestSetCapacityWhileQueueIsInUse",
		old:  "\tif err := c.store.learnFrom(record); err != nil {\n\t\treturn err\n\t}\n", new: "\t_ = record\n",
	},
	{
		name: "a change is refused to who was made with the old value", file: "queue/store.go",
		test: "TestSetCapacityWhileQueueIsInUse",
		old:  "\t\tgiven.Capacity, given.Dedup = 0, 0\n", new: "",
	},
	{
		name: "a lower capacity leaves producers their places", file: "queue/admin.go",
		test: "TestSetCapacityLowerBlocksPutsUntilThereIsRoom",
		old:  "\treturn st.takeBackPlaces(ctx, s, n)\n", new: "\t_ = st.takeBackPlaces\n\treturn nil\n",
	},
	{
		name: "a batch larger than a lowered capacity waits for ever", file: "queue/putline.go",
		test: "TestBatchLargerThanLoweredCapacityFails",
		old:  "errors.Is(err, ErrFull) && !never {", new: "errors.Is(err, ErrFull) {",
	},
	{
		name: "puts behind a batch that was too large wait although there is room", file: "queue/putline.go",
		test: "TestBatchLargerThanLoweredCapacityFails",
		old:  "return !full || tooLarge", new: "return !full",
	},
	{
		name: "who waits for room is not woken by more of it", file: "queue/admin.go",
		test: "TestSetCapacityWhileQueueIsInUse",
		old: "encodeIn(in+1, line), stat.Version),\n\t\t\tframework.SetOp(st.nodes.childPath(outNode), nil, " +
			"framework.AnyVersion)}", new: "encodeIn(in, line), stat.Version)}",
	},
	{
		name: "a producer forgets ids as it would have", file: "queue/admin.go",
		test: "TestSetDedupLongerWindowHoldsForOtherProducers",
		old:  "return []framework.Op{framework.SetOp(st.nodes.childPath(idsDir), data, stat.Version)}, err",
		new:  "_, _ = data, stat\n\t\treturn nil, err",
	},
	{
		name: "a batch's headers are not counted", file: "queue/queue.go", test: "TestHeadersAreBounded",
		old: "size += len(payload) + headers", new: "size += len(payload) + 0*headers",
	},
	{
		name: "a bucket of ids that was deleted stays missing", file: "queue/dedup.go",
		test: "TestBucketChangedByHandIsReplaced",
		old: "return d.repairBucket(ctx, s, append([]framework.Op{framework.CheckOp(d.dir(), st.Version)}, " +
			"d.openOps(n)...))", new: "return s.Sync(ctx, d.dir())",
	},
	{
		name: "a bucket of ids that was closed by hand stays the present one", file: "queue/dedup.go",
		test: "TestBucketChangedByHandIsReplaced",
		old:  "case bucket.Version > 0:", new: "case bucket.Version < 0:",
	},
}
