package mutants

func init() { lists["ids"] = idsMutants }

// idsMutants are the safeguards of package ids.
var idsMutants = []mutant{
	{
		name: "a reservation is measured under its mutex", file: "ids/reservations.go",
		test: "TestAnInstrumentMayAskForAnID",
		old:  "	store(err)\n	pending.err",
		new:  "	store(err)\n	r.tel.countReservation(err)\n	pending.err",
	},
	// Sequences.
	{
		name: "a block is reserved at any version", file: "ids/sequence.go", test: "TestNumbersAreUniqueAndRise",
		old: "session.Set(s.ctx, s.path, r.encode(), st.Version)",
		new: "session.Set(s.ctx, s.path, r.encode(), 0*st.Version+framework.AnyVersion)",
	},
	{
		name: "a write without an answer reserves", file: "ids/sequence.go",
		test: "TestAReservationWithoutAnAnswerIsNotUsed",
		old:  "	case err != nil:\n		return nil, err\n	}\n	s.written",
		new:  "	case err != nil && !isUnknown(err):\n		return nil, err\n	}\n	s.written",
	},
	{
		name: "a sequence that was deleted begins anew", file: "ids/sequence.go",
		test: "TestASequenceThatWasSetBackIsRefused",
		old:  "if missing && s.written > 0 || r.Next < s.written {",
		new:  "if r.Next < s.written && !missing {",
	},
	{
		name: "a sequence follows a number that was set back", file: "ids/sequence.go",
		test: "TestASequenceThatWasSetBackIsRefused",
		old:  "if missing && s.written > 0 || r.Next < s.written {",
		new:  "if missing && s.written > 0 {",
	},
	{
		name: "a lower number is believed behind no sync", file: "ids/sequence.go",
		old: "	if err := session.Sync(s.ctx, s.path); err != nil {\n		return err\n	}\n",
		new: "",
		redundant: "a session's server shows nothing older than it has shown; it needs a new session on a server " +
			"that lags behind the former one",
	},
	{
		name: "numbers are given after Close", file: "ids/sequence.go", test: "TestNoNumberAfterClose",
		old: "	s.block.Store(nil)\n",
		new: "",
	},
	{
		name: "blocks stay large", file: "ids/sequence.go", test: "TestBlocksFollowTheRate",
		old: "return max(s.size/2, s.opts.least)",
		new: "return s.size",
	},
	{
		name: "blocks stay small", file: "ids/sequence.go", test: "TestBlocksFollowTheRate",
		old: "return min(2*s.size, s.opts.most)",
		new: "return s.size",
	},
	{
		name: "the next block is not reserved ahead", file: "ids/sequence.go",
		test: "TestNextDoesNotWaitForTheNextBlock",
		old:  "	if !s.closed && s.ready == nil {\n		s.beginReservation()\n	}\n",
		new:  "",
	},
	{
		name: "a block goes beyond the last number", file: "ids/sequence.go", test: "TestASequenceEndsAtItsLastNumber",
		old: "	size = min(size, s.opts.last-first+1)\n",
		new: "",
	},
	{
		name: "a foreign node is taken for a sequence", file: "ids/record.go", test: "TestForeignNodesStayAsTheyAre",
		old: "	case kind != want:\n",
		new: "	case kind != want && false:\n",
	},

	// Workers.
	{
		name: "a slot's next user begins at the present time", file: "ids/slot.go",
		test: "TestAClockThatIsSetBackRepeatsNoID|TestAFrozenWorkerRepeatsNoID",
		old:  "max(now, o.owned.record.Until, floor, o.opts.epoch)",
		new:  "max(now, floor, o.opts.epoch)",
	},
	{
		name: "what a worker has reserved is not written", file: "ids/slot.go",
		test: "TestAClockThatIsSetBackRepeatsNoID|TestAFrozenWorkerRepeatsNoID",
		old:  "	next.Until = until\n",
		new:  "",
	},
	{
		name: "a window is raised without a check of owner and version", file: "ids/slot.go",
		test: "TestAWorkerWithADeletedOwnerNodeClaimsAnotherSlot",
		old: "framework.CheckOp(o.owned.owner, framework.AnyVersion), framework.SetOp(o.slotPath(o.owned.number), " +
			"next.encode(), o.owned.version))",
		new: "framework.CheckOp(o.path, framework.AnyVersion), framework.SetOp(o.slotPath(o.owned.number), " +
			"next.encode(), framework.AnyVersion))",
	},
	{
		name: "a window is raised without a check of the owner", file: "ids/slot.go",
		test: "TestAWorkerWithADeletedOwnerNodeClaimsAnotherSlot",
		old:  "framework.CheckOp(o.owned.owner, framework.AnyVersion)",
		new:  "framework.CheckOp(o.path, framework.AnyVersion)",
	},
	{
		name: "a slot is claimed at any version", file: "ids/slot.go", test: "TestOneOfTwoClaimantsGetsASlot",
		old: "framework.SetOp(path, chosen.record.encode(), chosen.version)",
		new: "framework.SetOp(path, chosen.record.encode(), 0*chosen.version+framework.AnyVersion)",
	},
	{
		name: "a taken slot is free", file: "ids/slot.go", test: "TestAllSlotsTaken",
		old: "case node.Stat.NumChildren == 0:",
		new: "case node.Stat.NumChildren >= 0:",
	},
	{
		name: "workers need not agree on slots and epoch", file: "ids/slot.go", test: "TestWorkersOfOnePathAgree",
		old: "if r.Slots != own.Slots || r.Epoch != own.Epoch {",
		new: "if r.Slots != own.Slots && r.Epoch != own.Epoch {",
	},
	{
		name: "a slot's times do not end", file: "ids/slot.go", test: "TestForeignSlotsStayAsTheyAre",
		old: "	if till <= from {",
		new: "	if till < from {",
	},
	{
		name: "a worker's ids go back when the ensemble's clock does", file: "ids/worker.go",
		test: "TestAClockThatIsSetBackRepeatsNoID",
		old:  "first = max(next, present)",
		new:  "first = present",
	},
	{
		name: "a window is used up beyond its end", file: "ids/worker.go", test: "TestAFrozenWorkerRepeatsNoID",
		old: "		given = min(n, window.until-first)\n		if given <= 0 {\n			return 0, 0\n		}\n",
		new: "		given = n\n",
	},
	{
		name: "the next window is not reserved ahead", file: "ids/worker.go",
		test: "TestNextDoesNotWaitForTheNextWindow",
		old:  "	if !w.closed {\n		w.beginReservation()\n	}\n",
		new:  "",
	},
	{
		name: "a number of slots that was refused is used", file: "ids/worker.go", test: "TestBadArgumentsOfAWorker",
		old: "w.err, slots = err, 1 // with", new: "w.err = err // with",
	},
	{
		name: "windows stay short", file: "ids/worker.go", test: "TestAWorkerWritesLittle",
		old: "return min(2*w.length, maxWindow)",
		new: "return w.length",
	},
	{
		name: "Close frees no slot when its context has ended", file: "ids/worker.go",
		test: "TestCloseFreesTheSlotThoughItsContextHasEnded",
		old:  "		w.slot.releaseSlot()\n",
		new:  "		if ctx.Err() == nil {\n			w.slot.releaseSlot()\n		}\n",
	},
	{
		name: "a failed reservation lengthens the next one", file: "ids/worker.go",
		test: "TestAFailedReservationDoesNotLengthenTheNextOne",
		old:  "		if err == nil {\n			w.length",
		new:  "		if err == nil || true {\n			w.length",
	},
	{
		name: "ids are given after Close", file: "ids/worker.go", test: "TestNoIDAfterClose",
		old: "	w.closed = true\n	w.window.Store(nil)\n",
		new: "	w.closed = true\n",
	},
	{
		name: "Close leaves the owner node", file: "ids/slot.go", test: "TestNoIDAfterClose",
		old: "	if o.owned != nil {\n		o.deletion", new: "	if o.owned != nil && false {\n		o.deletion",
	},
	{
		name: "a name without an answer is made again", file: "ids/name.go", test: "TestNamesAreUnique",
		old: "		if path != \"\" {",
		new: "		if path != \"\" && false {",
	},
	{
		name: "names' directory is a container", file: "ids/name.go", test: "TestNamesAreUnique",
		old: "s.CreateIfMissing(ctx, n.dir, nil, framework.Persistent)",
		new: "s.CreateIfMissing(ctx, n.dir, nil, framework.Container)",
	},
	{
		name: "a node without a name stays", file: "ids/name.go", test: "TestNamesEndAfter2To31",
		old: "client.DeleteIfPresent(ctx, n.name.Path)", new: "ctx.Err()",
	},
	{
		name: "names wrap", file: "ids/name.go", test: "TestNamesEndAfter2To31",
		old: "strings.HasPrefix(number, \"-\")",
		new: "strings.HasPrefix(number, \"x\")",
	},

	// Counters.
	{
		name: "a transaction without an answer has not happened", file: "ids/counter.go", test: "TestAnAddCountsOnce",
		old: "		c.sentBatch, c.transactionUnanswered = batch, true\n		return err\n",
		new: "		return c.putBack(batch, err)\n",
	},
	{
		name: "a transaction without an answer has happened", file: "ids/counter.go", test: "TestAnAddCountsOnce",
		old: "	case err == nil && st.Version == c.version:\n		return false, nil\n",
		new: "	case err == nil && st.Version == c.version:\n		c.transactionUnanswered = " +
			"false\n		c.finishBatch(c.sentBatch)\n		return true, nil\n",
	},
	{
		name: "a counter is written at any version", file: "ids/counter.go",
		test: "TestACounterIsCompared|TestAnAddCountsOnce",
		old:  "c.encodeNumber(after), version)",
		new:  "c.encodeNumber(after), 0*version+framework.AnyVersion)",
	},
	{
		name: "an old number refuses a change", file: "ids/counter.go", test: "TestACounterIsCompared",
		old: "	if refused > 0 {",
		new: "	if refused < 0 {",
	},
	{
		name: "a counter has any length", file: "ids/counter.go", test: "TestForeignCountersStayAsTheyAre",
		old: "case len(data) != c.width:",
		new: "case len(data) < c.width:",
	},
	{
		name: "a counter of 8 bytes wraps", file: "ids/counter.go", test: "TestACounterDoesNotOverflow",
		old: "if (sum > value) != (delta > 0) && delta != 0 || !c.hasRoom(sum) {",
		new: "if !c.hasRoom(sum) {",
	},
	{
		name: "a counter of 4 bytes wraps", file: "ids/counter.go", test: "TestACounterDoesNotOverflow",
		old: "return c.width != 4 || value >= math.MinInt32 && value <= math.MaxInt32",
		new: "return c.width == 8 || value >= math.MinInt64",
	},
	{
		name: "an add that was given up is made", file: "ids/counter.go", test: "TestAnAddEndsWithItsContext",
		old: "		c.waiting = slices.DeleteFunc(c.waiting, func(other *counterChange) bool { return other " +
			"== own })\n",
		new: "		_ = slices.Contains(c.waiting, own)\n",
	},
	{
		name: "an add that was sent says it was not", file: "ids/counter.go", test: "TestAnAddEndsWithItsContext",
		old: "	if own.maybeSent {",
		new: "	if own.maybeSent && own.err != nil {",
	},
	{
		name: "a note that is gone says nothing happened", file: "ids/counter.go",
		test: "TestADeletedNoteMakesAnUnknownOutcome",
		old: "		c.failWithUnknownOutcome(fmt.Errorf(\"the note %s was deleted or written by another " +
			"client\", c.note))\n		return true, nil\n",
		new: "		c.transactionUnanswered, c.noteUsable = false, false\n		return false, " +
			"c.putBack(c.sentBatch, recipe.ErrAgain)\n",
	},
	{
		name: "the notes of the dead are deleted one by one", file: "ids/counter.go",
		test: "TestNotesOfManyWritersCostFewRequests",
		old:  "const notesAtOnce = 100\n", new: "const notesAtOnce = 1\n",
	},
	{
		name: "a note that cannot be deleted keeps its neighbours", file: "ids/counter.go",
		test: "TestNotesOfManyWritersCostFewRequests",
		old:  "	if len(deletions) == 1 {\n", new: "	if len(deletions) > 0 {\n",
	},
	{
		name: "all slots are read in one request", file: "ids/slot.go", test: "TestManySlots",
		old: "\t\t\tpaths := make([]string, min(slotsAtOnce, len(existing)-read))\n\t\t\tfor i := range paths " +
			"{\n\t\t\t\tpaths[i] = o.slotPath(existing[read+i])\n\t\t\t}\n\t\t\tif next, err = " +
			"s.GetAll(ctx, paths...); err != nil {",
		new: "\t\t\tpaths := make([]string, len(existing)-read)\n\t\t\tfor i := range paths {\n\t\t\t\tpaths[i] = " +
			"o.slotPath(existing[read+i])\n\t\t\t}\n\t\t\tif next, err = s.GetAll(ctx, paths...); err != nil {",
	},
	{
		name: "notes of the dead stay", file: "ids/counter.go", test: "TestOldNotesAreDeleted",
		old: "> noteAge {",
		new: "> 1000*noteAge {",
	},
	{
		name: "notes of the living are deleted", file: "ids/counter.go", test: "TestOldNotesAreDeleted",
		old: "> noteAge {",
		new: "> noteAge/1000 {",
	},
	{
		name: "Close leaves the note of a transaction without an answer", file: "ids/counter.go",
		test: "TestCloseDeletesTheNoteOfAnAddWithoutAnAnswer",
		old:  "	c.sentBatch, c.transactionUnanswered, c.noteUsable = nil, false, false\n",
		new:  "	c.sentBatch, c.transactionUnanswered, c.noteUsable, c.note = nil, false, false, \"\"\n",
	},
	{
		name: "a note that another program has written stays", file: "ids/counter.go", test: "TestAWriterHasOneNote",
		old: "	if c.note != \"\" {\n		if err := s.DeleteIfPresent(",
		new: "	if c.note == \"\" && c.noteUsable {\n		if err := s.DeleteIfPresent(",
	},
	{
		name: "Close leaves the note", file: "ids/counter.go", test: "TestOldNotesAreDeleted",
		old: "err := c.client.DeleteIfPresent(ctx, note)",
		new: "err := ctx.Err()",
	},
}
