package mutants

func init() { lists["zkserver"] = zkserverMutants }

// zkserverMutants are what package zkserver does as a real server does, and tests of clients rely
// on.
var zkserverMutants = []mutant{
	{
		name: "a session too large is closed", file: "internal/zkserver/database.go",
		test: "TestSessionTooLargeFailsTheServer",
		old:  "size > db.closeLimit {", new: "size > db.closeLimit && false {",
	},
	{
		name: "a close may have a byte more", file: "internal/zkserver/database.go",
		pkg:  "./internal/proof/conformance",
		test: "TestTooLargeCloseEndsMemoryServer",
		old:  "size > db.closeLimit {", new: "size > db.closeLimit+1 {",
	},
	{
		name: "a thaw leaves out closing connections", file: "internal/zkserver/levers.go",
		test: "TestDelayedRepliesOfAClosingConnection",
		old:  "s.connections.openByAge() {\n\t\tc.outgoing.releaseDue()",
		new:  "s.connections.byAge() {\n\t\tc.outgoing.releaseDue()",
	},
	{
		name: "a restart leaves out closing connections", file: "internal/zkserver/levers.go",
		test: "TestDelayedRepliesOfAClosingConnection",
		old:  "\ts.connections.cutAll()\n",
		new:  "\tfor _, c := range s.connections.byAge() {\n\t\ts.connections.cutConnection(c)\n\t}\n",
	},
	{
		name: "the last writes may take any time", file: "internal/zkserver/outgoing.go",
		test: "TestDelayedReplyThatIsNotRead",
		old:  "\tq.limitLastWrites()\n\tq.changed.Signal()\n}\n", new: "\tq.changed.Signal()\n}\n",
	},
	{
		name: "a failed server grants sessions", file: "internal/zkserver/processor.go",
		test: "TestSessionTooLargeFailsTheServer",
		old:  "d.Err() != nil || p.db.failure != nil {", new: "d.Err() != nil {",
	},
	{
		name: "a failed server expires sessions", file: "internal/zkserver/server.go",
		test: "TestSessionTooLargeFailsTheServer",
		old:  "for s.db.failure == nil {", new: "for {",
	},
	{
		name: "a failed server removes containers", file: "internal/zkserver/server.go",
		test: "TestSessionTooLargeFailsTheServer",
		old:  "if s.db.failure != nil {", new: "if false {",
	},
	{
		name: "a multi's parts are checked against each other's usage", file: "internal/zkserver/transaction.go",
		pkg:  "./internal/proof/conformance",
		test: "TestMemoryAnswersAsRecorded",
		old:  "t.events = append(t.events, event{wire.EventNodeCreated, n.path, int64(len(n.data)), n.acl}",
		new: "t.tree.countUsage([]event{{wire.EventNodeCreated, n.path, int64(len(n.data)), n.acl}})\n" +
			"\tt.events = append(t.events, event{wire.EventNodeCreated, n.path, int64(len(n.data)), n.acl}",
	},
	{
		name: "usage counts a later part of its own transaction twice", file: "internal/zkserver/quota.go",
		pkg:  "./internal/proof/conformance",
		test: "TestMemoryAnswersAsRecorded",
		old:  "usage.addUsage(-nodesOf(e.typ), -e.growth)", new: "_ = e",
	},
	{
		name: "the super user needs grants", file: "internal/zkserver/acl.go", pkg: "./internal/proof/conformance",
		test: "TestMemoryAnswersAsRecorded",
		old:  "if id.Scheme == schemeSuper {", new: "if id.Scheme == schemeSuper && false {",
	},
	{
		name: "TTL nodes for everybody", file: "internal/zkserver/operations.go", test: "TestTTLNodesNeedTheSetting",
		old: "if hasTTL(r.Flags) && !t.tree.ttlNodes {", new: "if false {",
	},
	{
		name: "any number of connections", file: "internal/zkserver/server.go", test: "TestMaxClientCnxns",
		old: "if limit > 0 && s.connections", new: "if false && s.connections",
	},
	{
		name: "any size of requests", file: "internal/zkserver/connection.go", test: "TestJuteMaxBufferLimitsRequests",
		old: "wire.ReadFrame(in, frame, maxFrame)", new: "wire.ReadFrame(in, frame, max(maxFrame, wire.MaxFrame))",
	},
	{
		name: "Start is content with a failed server", file: "zktest/server.go",
		test: "TestATestFailsByASessionThatIsTooLarge",
		old:  "if err := s.Err(); err != nil {", new: "if err := s.Err(); false && err != nil {",
	},
	{
		name: "a create that is undone takes no number", file: "internal/zkserver/transaction.go",
		pkg: "./internal/proof/conformance", test: "TestMemoryConformsOverTCP",
		old: "\tt.tree.unlinkNode(n)\n\tparent.pzxid = t.zxid\n",
		new: "\tt.tree.unlinkNode(n)\n\tparent.pzxid = t.zxid\n\tif t.atomic {\n\t\tparent.childrenCreated--\n\t}\n",
	},
	{
		name: "unreadable nodes have events", file: "internal/zkserver/connection.go",
		pkg:  "./internal/proof/conformance",
		test: "TestMemoryConformsOverLinks",
		old:  "if !isAllowed(e.acl, wire.PermRead, c.ids) {", new: "if false {",
	},
	{
		name: "stmk waits for its argument", file: "internal/zkserver/server.go", test: "TestStmkNeedsItsArgument",
		old: "in.Buffered() < len(command)", new: "false",
	},
	{
		name: "a large answer counts as unread", file: "internal/zkserver/outgoing.go",
		test: "TestAnAnswerLargerThanTheLimitCutsNobody",
		old:  "q.pending-q.largest > q.limit", new: "q.pending > q.limit",
	},
}
