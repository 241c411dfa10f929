package mutants

// idsMutants are the safeguards of package ids.
var idsMutants = []mutant{
	{
		promise: "A change of a counter counts once",
		name:    "a transaction without an answer has not happened",
		file:    "ids/counter.go", test: "TestAnAddCountsOnce",
		old: "		c.sentBatch, c.transactionUnanswered = batch, true\n		return err\n",
		new: "		return c.putBack(batch, err)\n",
	},
	{
		promise: "A change of a counter counts once",
		name:    "a counter is written at any version", file: "ids/counter.go",
		test: "TestACounterIsCompared|TestAnAddCountsOnce",
		old:  "c.encodeNumber(after), version)",
		new:  "c.encodeNumber(after), 0*version+framework.AnyVersion)",
	},
	{
		promise: "A counter is stored in Curator's bytes",
		name:    "write markers of the living are deleted", file: "ids/counter.go", test: "TestOldMarkersAreDeleted",
		old: "> markerAge {",
		new: "> markerAge/1000 {",
	},
	{
		promise: "A sequence gives no number twice",
		name:    "a block is reserved at any version", file: "ids/sequence.go", test: "TestNumbersAreUniqueAndRise",
		old: "session.Set(s.ctx, s.path, r.encode(), stat.Version)",
		new: "session.Set(s.ctx, s.path, r.encode(), 0*stat.Version+framework.AnyVersion)",
	},
	{
		promise: "A sequence gives no number twice",
		name:    "a write without an answer reserves", file: "ids/sequence.go",
		test: "TestAReservationWithoutAnAnswerIsNotUsed",
		old:  "	case err != nil:\n		return nil, err\n	}\n	s.written",
		new:  "	case err != nil && !isUnknown(err):\n		return nil, err\n	}\n	s.written",
	},
	{
		promise: "A process refuses a sequence that was deleted or set back below",
		name:    "a sequence that was deleted begins anew", file: "ids/sequence.go",
		test: "TestASequenceThatWasSetBackIsRefused",
		old:  "if missing && s.written > 0 || r.Next < s.written {",
		new:  "if r.Next < s.written && !missing {",
	},
	{
		promise: "A worker gives no id twice",
		name:    "a slot's next user begins at the present time", file: "ids/slot.go",
		test: "TestAClockThatIsSetBackRepeatsNoID|TestAFrozenWorkerRepeatsNoID",
		old:  "max(now, o.owned.record.Until, floor, o.opts.epoch)",
		new:  "max(now, floor, o.opts.epoch)",
	},
	{
		promise: "A worker gives no id twice",
		name:    "what a worker has reserved is not written", file: "ids/slot.go",
		test: "TestAClockThatIsSetBackRepeatsNoID|TestAFrozenWorkerRepeatsNoID",
		old:  "	next.Until = until\n",
		new:  "",
	},
	{
		promise: "A worker gives no id twice",
		name:    "a window is used up beyond its end", file: "ids/worker.go", test: "TestAFrozenWorkerRepeatsNoID",
		old: "		given = min(n, window.until-first)\n		if given <= 0 {\n			return 0, 0\n		}\n",
		new: "		given = n\n",
	},
	{
		promise: "Each worker has its own slot",
		name:    "a window is raised without a check of owner and version", file: "ids/slot.go",
		test: "TestAWorkerWithADeletedOwnerNodeClaimsAnotherSlot",
		old: "framework.CheckOp(o.owned.owner, framework.AnyVersion), framework.SetOp(o.slotPath(o.owned.number), " +
			"next.encode(), o.owned.version))",
		new: "framework.CheckOp(o.path, framework.AnyVersion), framework.SetOp(o.slotPath(o.owned.number), " +
			"next.encode(), framework.AnyVersion))",
	},
	{
		promise: "Each worker has its own slot",
		name:    "a slot is claimed at any version", file: "ids/slot.go", test: "TestOneOfTwoClaimantsGetsASlot",
		old: "framework.SetOp(path, chosen.record.encode(), chosen.version)",
		new: "framework.SetOp(path, chosen.record.encode(), 0*chosen.version+framework.AnyVersion)",
	},
	{
		promise: "Each worker has its own slot",
		name:    "Close frees no slot when its context has ended", file: "ids/worker.go",
		test: "TestCloseFreesTheSlotThoughItsContextHasEnded",
		old:  "		w.slot.releaseSlot()\n",
		new:  "		if ctx.Err() == nil {\n			w.slot.releaseSlot()\n		}\n",
	},
	{
		promise: "`MakeName` gives a name once",
		name:    "a name without an answer is made again", file: "ids/name.go", test: "TestNamesAreUnique",
		old: "		if path != \"\" {",
		new: "		if path != \"\" && false {",
	},
}
