// Package zktest is an in-memory ZooKeeper for development and tests: one server that speaks the
// real wire protocol, an in-memory network, and levers that inject faults into both.
//
// It is ONE server in memory, without storage and without replication, and it ends with the
// process. Production needs an Apache ZooKeeper ensemble.
//
// A test starts a server and gives each client a link of its own:
//
//	srv := zktest.Start(t)
//	link := srv.Link("a")
//	conn, events, err := zk.Connect(srv.Servers(), 10*time.Second, zk.WithDialer(link.Dial))
//
// All of it works inside a testing/synctest bubble, where time is virtual: an
// expiry after ten seconds or a night without a network takes milliseconds.
// Start the server inside the bubble, use links and not ListenTCP (a real
// socket stops virtual time), and close every client before the bubble ends.
//
// # Guarantees
//
// The server answers as a standalone Apache ZooKeeper 3.8.0. Its tests replay conversations that
// were recorded with the real server, and compare each answer where a real server is installed. TTL
// nodes, enforced quotas, the super user and limits of requests and connections have the defaults
// of a real server: see the options. A list of children is not sorted; its order is the same in
// every run that makes the same requests in the same order. A session ends its timeout after the
// last packet that the server read, rounded up to a whole tick as on the real server, or exactly
// then WithExactExpiry.
//
// If the close of a session is too large for an ensemble, this server fails as the ensemble would,
// and so does a test that uses Start: see Server.Err.
//
// To ACLs of the ip scheme, a client on a link has the address 127.0.0.1.
//
// # Not simulated
//
// Several servers: there is no election, and no quorum that can be lost. Server.Lag lets reads fall
// behind as on a follower, and WithFollowers and Server.Follower simulate the messages between a
// follower and its leader, which may be held. Use a real ensemble for the rest.
//
// Storage: a server is empty when it starts. Restart keeps nodes and sessions, a new Server does
// not.
//
// These settings and interfaces of the real server: SASL and Kerberos, TLS, x509 and plugged-in
// authentication, digests other than SHA-1, skipACL, reconfiguration (the answer is that of one
// server), read-only mode, local sessions, throttling by load (Server.Throttle is a fault), JMX,
// the HTTP admin server, digests of the tree, znode.container.maxNeverUsedIntervalMs, ZooKeeper
// 3.9's request encodings.
//
// The four-letter word mntr answers the 23 lines that monitoring tools read from a standalone
// server, from version, server_state and znode_count to latencies, watches, packets, sessions and
// open_file_descriptor_count (of this process). Latencies are 0. It has neither the sizes of
// answers nor the real server's further counters and those of Java, some 460 lines.
//
// Two defaults differ from a real server's, so that tests need no settings: this server answers all
// four-letter words, and not only srvr; and it does not limit the connections of an address, which
// a real server limits to 60.
package zktest
