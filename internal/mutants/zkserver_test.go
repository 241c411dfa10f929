package mutants

func init() { lists["zkserver"] = zkserverMutants }

// zkserverMutants are what package zkserver does as a real server does, and tests of clients rely on.
var zkserverMutants = []mutant{
	{
		name: "a session too large is closed", file: "internal/zkserver/failure.go", test: "TestASessionTooLargeEndsTheServer",
		old: "if size <= limit {", new: "if true || size <= limit {",
	},
	{
		name: "a close may have a byte more", file: "internal/zkserver/failure.go", pkg: "./internal/conformance",
		test: "TestACloseThatIsTooLargeEndsTheMemoryServer",
		old:  "if size <= limit {", new: "if size <= limit+1 {",
	},
	{
		name: "a failed server grants sessions", file: "internal/zkserver/connect.go", test: "TestASessionTooLargeEndsTheServer",
		old: "d.Err() != nil || s.failure != nil {", new: "d.Err() != nil {",
	},
	{
		name: "a failed server expires sessions", file: "internal/zkserver/expiry.go", test: "TestASessionTooLargeEndsTheServer",
		old: "for s.failure == nil {", new: "for {",
	},
	{
		name: "a failed server reaps", file: "internal/zkserver/reaper.go", test: "TestASessionTooLargeEndsTheServer",
		old: "if s.failure != nil {", new: "if false {",
	},
	{
		name: "a multi's parts are checked against each other's usage", file: "internal/zkserver/txn.go", pkg: "./internal/conformance",
		test: "TestMemoryAnswersAsRecorded",
		old:  "t.events = append(t.events, event{wire.EventNodeCreated, n.path, int64(len(n.data))}",
		new:  "t.s.tree.countUsage([]event{{wire.EventNodeCreated, n.path, int64(len(n.data))}})\n\tt.events = append(t.events, event{wire.EventNodeCreated, n.path, int64(len(n.data))}",
	},
	{
		name: "usage counts a later part of its own transaction twice", file: "internal/zkserver/quota.go", pkg: "./internal/conformance",
		test: "TestMemoryAnswersAsRecorded",
		old:  "usage.add(-nodesOf(e.typ), -e.grew)", new: "_ = e",
	},
	{
		name: "the super user needs grants", file: "internal/zkserver/acl.go", pkg: "./internal/conformance", test: "TestMemoryAnswersAsRecorded",
		old: "if id.Scheme == schemeSuper {", new: "if id.Scheme == schemeSuper && false {",
	},
	{
		name: "TTL nodes for everybody", file: "internal/zkserver/writes.go", test: "TestTTLNodesNeedTheSetting",
		old: "if hasTTL(r.Flags) && !t.s.config.ExtendedTypes {", new: "if false {",
	},
	{
		name: "any number of connections", file: "internal/zkserver/server.go", test: "TestConnectionsOfAnAddress",
		old: "return open >= s.config.MaxClientCnxns", new: "return false",
	},
	{
		name: "any size of requests", file: "internal/zkserver/conn.go", test: "TestJuteMaxBufferBoundsRequests",
		old: "wire.ReadFrame(in, frame, c.s.config.JuteMaxBuffer)", new: "wire.ReadFrame(in, frame, wire.MaxFrame)",
	},
	{
		name: "Start is content with a failed server", file: "zktest/server.go", test: "TestATestFailsByASessionThatIsTooLarge",
		old: "if err := s.Err(); err != nil {", new: "if err := s.Err(); false && err != nil {",
	},
	{
		name: "a create that is undone takes no number", file: "internal/zkserver/txn.go", pkg: "./internal/conformance", test: "TestMemoryConformsOverTCP",
		old: "	t.s.tree.unlink(n)\n	parent.pzxid = t.zxid\n", new: "	t.s.tree.unlink(n)\n	parent.pzxid = t.zxid\n	if t.atomic {\n		parent.creates--\n	}\n",
	},
}
