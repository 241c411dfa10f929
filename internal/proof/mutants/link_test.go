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
		name: "a server that hangs up after the handshake has not failed", file: "internal/link/monitor.go",
		test: "TestAServerThatHangsUpAfterTheHandshakeHasFailed",
		old:  "m.reportFailure(c.address, Unproven(err))", new: "_ = Unproven",
	},
	{
		name: "an event is not told", file: "internal/link/conn.go", test: "TestAnswersGoToTheirCalls",
		old: "		c.cfg.Event(event)\n", new: "",
	},
	{
		name: "the newest transaction is not told to the next server", file: "internal/link/conn.go",
		test: "TestNextServerGetsLastZxid",
		old:  "return withZxidSeen(frame, c.session.Seen()), nil", new: "return frame, nil",
	},
	{
		name: "request numbers begin anew on each connection", file: "internal/link/conn.go",
		test: "TestNumbersGoOnOnTheNextConnection",
		old:  "xid := c.session.takeXid()", new: "xid := firstXid + int32(len(c.pending))",
	},
	{
		name: "requests pass before the credentials", file: "internal/link/requests.go",
		test: "TestNothingPassesWithoutCredentials",
		old:  " || !c.admitted && op != wire.OpAuth {", new: " {",
	},
	{
		name: "the connect request counts from its answer", file: "internal/link/monitor.go",
		test: "TestSentAtIsBeforeTheConnectRequest",
		old:  "h.SentAt, h.Server = c.sentAt, c.address", new: "h.SentAt, h.Server = m.cfg.Now(), c.address",
	},
	{
		name: "the answer of an ended connection establishes it", file: "internal/link/monitor.go",
		test: "TestAnAnswerOfAnEndedConnectionDoesNotEstablishIt",
		old:  "} else if m.cur == c && c.generation == m.status.Generation {",
		new:  "} else if c.generation == m.status.Generation {",
	},
	{
		name: "a connect request's answer may be as long as any", file: "internal/link/frame.go",
		test: "TestGarbageEndsTheConnection",
		old:  "least, most = connectReply, maxConnect", new: "least, most = connectReply, MaxAnswer",
	},
	{
		name: "a server may answer for another session", file: "internal/link/conn.go",
		test: "TestAnAnswerForAnotherSessionIsRefused",
		old:  "h.SessionID != 0 && h.SessionID != c.requestedID {", new: "false {",
	},
	{
		name: "a silent server is waited for", file: "internal/link/conn.go", test: "TestASilentServerIsGivenUp",
		old: "		d = r.c.handshakeDeadline\n", new: "",
	},

	// Pings that count.
	{
		name: "a ping is sent once", file: "internal/link/outbox.go", test: "TestPingsAreSentInPairs",
		old: "	for range 2 {\n		mark", new: "	for range 1 {\n		mark",
	},
	{
		name: "the library's pings are sent, too", file: "internal/link/conn.go", test: "TestPingsAreSentInPairs",
		old: "	if isPing(frame) {\n", new: "	if false && isPing(frame) {\n",
	},
	{
		name: "a server is given up as soon as with the library's pings", file: "internal/link/conn.go",
		test: "TestAServerIsWaitedForBetweenPings",
		old:  "		d = d.Add(r.c.extraReadTime)\n", new: "",
	},
	{
		name: "one answer makes a pair", file: "internal/link/ping.go", test: "TestPingsAreSentInPairs",
		old: "	if !p.half {\n		p.half = true\n		return false\n	}\n", new: "",
	},
	{
		name: "a pair counts from its answer", file: "internal/link/ping.go", test: "TestPingsAreSentInPairs",
		old: "PingPair{SentAt: p.unanswered[0], AnsweredAt: at}", new: "PingPair{SentAt: at, AnsweredAt: at}",
	},
	{
		name: "pairs of a former connection count", file: "internal/link/requests.go",
		test: "TestPingPairsOfAnotherConnectionDoNotCount",
		old:  "	if m.cur == nil || m.cur.generation != generation {\n", new: "	if m.cur == nil {\n",
	},

	// What is queued, and what was sent.
	{
		name: "requests of an ended connection are not answered", file: "internal/link/conn.go",
		test: "TestAnEndedConnectionAnswersItsCalls",
		old:  "\t\tc.session.connectionEnded(c, err)\n\t\tc.failPending()\n",
		new:  "\t\tc.session.connectionEnded(c, err)\n",
	},
	{
		name: "an urgent request waits its turn", file: "internal/link/outbox.go",
		test: "TestCallersDoNotWaitForNetwork",
		old:  "\tc := o.lastChunk(call.Urgent)\n", new: "\tc := o.lastChunk(false)\n",
	},
	{
		name: "what waits is written in another order", file: "internal/link/outbox.go",
		test: "TestCallersDoNotWaitForNetwork",
		old:  "	*list = append(*list, c)\n", new: "	*list = slices.Insert(*list, 0, c)\n",
	},
	{
		name: "all that waits leaves in one write", file: "internal/link/outbox.go",
		test: "TestAnUrgentRequestWaitsForOneChunkAtMost",
		old:  "(*list)[n-1].frames.Len() < chunkSize {", new: "true {",
	},
	{
		name: "what was queued counts as sent", file: "internal/link/conn.go", test: "TestOnlyWrittenFramesCountAsSent",
		old: "		if call.sent {\n", new: "		if true {\n",
	},
	{
		name: "what was written counts as not sent", file: "internal/link/outbox.go",
		test: "TestOnlyWrittenFramesCountAsSent",
		old:  "		call.sent = true\n", new: "		call.sent = false\n",
	},
	{
		name: "a frame that broke off counts as sent", file: "internal/link/conn.go",
		test: "TestPartialFrameWasNotSent",
		old:  "\t\t\tnext.markUnsent(n)\n", new: "			_ = n\n",
	},
	{
		name: "the queue has no bound", file: "internal/link/conn.go", test: "TestTheQueueIsBounded",
		old: "	case bounded && !calls[0].Urgent && c.out.waiting >= MaxQueued:\n		return ErrFull\n", new: "",
	},
	{
		name: "what was written still counts as waiting", file: "internal/link/outbox.go",
		test: "TestTheQueueIsBounded",
		old:  "		o.waiting -= c.frames.Len()\n", new: "",
	},
	{
		name: "who waits for room is not told of the end", file: "internal/link/conn.go",
		test: "TestWaiterForQueueSpaceEndsWithConnection",
		old:  "	c.tellRoom()\n	c.work.Signal()\n	if c.pings", new: "	c.work.Signal()\n	if c.pings",
	},
	{
		name: "the first requests of a connection come later", file: "internal/link/requests.go",
		test: "TestFirstRequestsOfConnectionAreSentFirst",
		old:  "\t\t\terr = m.cur.queueCalls(first, false)\n", new: "\t\t\tgo m.cur.queueCalls(first, false)\n",
	},
	{
		name: "an urgent request overtakes the first requests of a connection", file: "internal/link/requests.go",
		test: "TestFirstRequestsOfConnectionAreSentFirst",
		old:  "			call.Urgent = true\n", new: "			_ = call\n",
	},
}
