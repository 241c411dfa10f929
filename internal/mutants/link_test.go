package mutants

func init() { lists["link"] = linkMutants }

// linkMutants are the safeguards of package internal/link.
var linkMutants = []mutant{
	// One session.
	{
		name: "the library may open a second session", file: "internal/link/monitor.go", test: "TestNoSecondSession",
		old: "if sessionID == 0 && m.status.Handshake.SessionID != 0 {", new: "if false {",
	},
	{
		name: "the newest transaction is not told to the next server", file: "internal/link/conn.go", test: "TestTheNextServerIsToldWhatWasSeen",
		old: "return withZxidSeen(frame, c.m.seen.Load()), nil", new: "return frame, nil",
	},
	{
		name: "requests pass before the credentials", file: "internal/link/call.go", test: "TestNothingPassesWithoutCredentials",
		old: " || !c.admitted && op != wire.OpAuth {", new: " {",
	},
	{
		name: "the connect request counts from its answer", file: "internal/link/monitor.go", test: "TestSentAtIsBeforeTheConnectRequest",
		old: "h.SentAt, h.Server = c.sentAt, c.address", new: "h.SentAt, h.Server = m.cfg.Now(), c.address",
	},
	{
		name: "a silent server is waited for", file: "internal/link/conn.go", test: "TestASilentServerIsGivenUp",
		old: "		d = r.c.limit\n", new: "",
	},

	// What is queued, and what was sent.
	{
		name: "requests of an ended connection are not answered", file: "internal/link/conn.go", test: "TestAnEndedConnectionAnswersItsCalls",
		old: "		c.m.broken(c, err)\n		c.fail()\n", new: "		c.m.broken(c, err)\n",
	},
	{
		name: "an urgent request waits its turn", file: "internal/link/outbox.go", test: "TestNobodyWaitsForTheNetwork",
		old: "	c := o.last(call.Urgent)\n", new: "	c := o.last(false)\n",
	},
	{
		name: "what waits is written in another order", file: "internal/link/outbox.go", test: "TestNobodyWaitsForTheNetwork",
		old: "	*list = append(*list, c)\n", new: "	*list = slices.Insert(*list, 0, c)\n",
	},
	{
		name: "all that waits leaves in one write", file: "internal/link/outbox.go", test: "TestAnUrgentRequestWaitsForOneChunkAtMost",
		old: "(*list)[n-1].frames.Len() < chunkSize {", new: "true {",
	},
	{
		name: "what was queued counts as sent", file: "internal/link/call.go", test: "TestOnlyWhatWasWrittenCountsAsSent",
		old: "		if call.sent {\n", new: "		if true {\n",
	},
	{
		name: "what was written counts as not sent", file: "internal/link/outbox.go", test: "TestOnlyWhatWasWrittenCountsAsSent",
		old: "		call.sent = true\n", new: "		call.sent = false\n",
	},
	{
		name: "a frame that broke off counts as sent", file: "internal/link/conn.go", test: "TestAFrameThatBrokeOffWasNotSent",
		old: "			next.brokeOff(n)\n", new: "			_ = n\n",
	},
	{
		name: "the queue has no bound", file: "internal/link/call.go", test: "TestTheQueueIsBounded",
		old: "	case bounded && !calls[0].Urgent && c.out.waiting >= MaxQueued:\n		return ErrFull\n", new: "",
	},
	{
		name: "what was written still counts as waiting", file: "internal/link/outbox.go", test: "TestTheQueueIsBounded",
		old: "		o.waiting -= c.frames.Len()\n", new: "",
	},
	{
		name: "who waits for room is not told of the end", file: "internal/link/call.go", test: "TestWhoWaitsForRoomIsToldOfTheEnd",
		old: "	c.tellRoom()\n	c.work.Signal()\n	c.mu.Unlock()\n	for", new: "	c.work.Signal()\n	c.mu.Unlock()\n	for",
	},
	{
		name: "the first requests of a connection come later", file: "internal/link/call.go", test: "TestWhatIsFirstOnAConnectionLeavesFirst",
		old: "			err = m.cur.send(first, false)\n", new: "			go m.cur.send(first, false)\n",
	},
}
