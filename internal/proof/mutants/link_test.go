package mutants

// linkMutants are the safeguards of package internal/link.
var linkMutants = []mutant{
	{
		promise: "A lease's context ends before anyone else is granted the lock",
		name:    "the library may open a second session", file: "internal/link/transport.go",
		test: "TestNoSecondSession",
		old:  "if sessionID == 0 && t.status.Handshake.SessionID != 0 {", new: "if false {",
	},
	{
		promise: "The lease follows this rule and no other",
		name:    "the connect request counts from its answer", file: "internal/link/conn.go",
		test: "TestSentAtIsBeforeTheConnectRequest",
		old:  "Handshake{SentAt: c.sentAt,", new: "Handshake{SentAt: c.cfg.Now(),",
	},
	{
		promise: "The lease follows this rule and no other",
		name:    "the answer of an ended connection establishes it", file: "internal/link/transport.go",
		test: "TestAnAnswerOfAnEndedConnectionDoesNotEstablishIt",
		old:  "} else if t.cur == c {",
		new:  "} else {",
	},
	{
		promise: "A dormant session sends no write",
		name:    "a ping is sent once", file: "internal/link/outbox.go", test: "TestPingsAreSentInPairs",
		old: "	for range 2 {\n		mark", new: "	for range 1 {\n		mark",
	},
	{
		promise: "A dormant session sends no write",
		name:    "a pair counts from its answer", file: "internal/link/ping.go", test: "TestPingsAreSentInPairs",
		old: "PingPair{SentAt: p.unanswered[0], AnsweredAt: at}", new: "PingPair{SentAt: at, AnsweredAt: at}",
	},
	{
		promise: "Set, Create, Delete and Multi take effect at most once and do not",
		name:    "what was queued counts as sent",
		file:    "internal/link/conn.go", test: "TestOnlyWrittenFramesCountAsSent",
		old: "		if call.sent {\n", new: "		if true {\n",
	},
	{
		promise: "Set, Create, Delete and Multi take effect at most once and do not",
		name:    "what was written counts as not sent", file: "internal/link/outbox.go",
		test: "TestOnlyWrittenFramesCountAsSent",
		old:  "		call.sent = true\n", new: "		call.sent = false\n",
	},
	{
		promise: "Set, Create, Delete and Multi take effect at most once and do not",
		name:    "a frame that broke off counts as sent", file: "internal/link/conn.go",
		test: "TestPartialFrameWasNotSent",
		old:  "\t\t\tnext.markUnsent(n)\n", new: "			_ = n\n",
	},
	{
		promise: "The answer that a call gets is that of its own request",
		name:    "request numbers begin anew on each connection", file: "internal/link/conn.go",
		test: "TestNumbersGoOnOnTheNextConnection",
		old:  "xid := c.session.takeXid()", new: "xid := firstXid + int32(len(c.pending))",
	},
	{
		promise: "The answer that a call gets is that of its own request",
		name:    "a server may answer for another session", file: "internal/link/conn.go",
		test: "TestAnAnswerForAnotherSessionIsRefused",
		old:  "r, err := c.connectRequest.DecodeResponse(", new: "r, err := (&wire.ConnectRequest{}).DecodeResponse(",
	},
	{
		promise: "A request that follows a queued deletion reaches the servers after",
		name:    "the first requests of a connection come later", file: "internal/link/transport.go",
		test: "TestFirstRequestsOfConnectionAreSentFirst",
		old:  "\t\t\terr = c.conn.queueCalls(first, false)\n", new: "\t\t\tgo c.conn.queueCalls(first, false)\n",
	},
	{
		promise: "After `Session.Sync`, reads of the session show every transaction",
		name:    "the newest transaction is not told to the next server", file: "internal/link/conn.go",
		test: "TestNextServerGetsLastZxid",
		old:  "	request.LastZxid = max(request.LastZxid, c.session.Seen())\n", new: "",
	},
	{
		promise: "Other clients have no access to the nodes of a client with credentials",
		name:    "requests pass before the credentials", file: "internal/link/transport.go",
		test: "TestNothingPassesWithoutCredentials",
		old:  " || !c.conn.admitted && op != wire.OpAuth {", new: " {",
	},
}
