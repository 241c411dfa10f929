// Package zktest is an in-memory ZooKeeper for development and tests: one
// server that speaks the real wire protocol, an in-memory network to reach it
// by, and levers that break both in the ways that hurt.
//
// It is ONE node in memory. Nothing is stored, nothing is replicated, and it
// ends with the process. Production is an Apache ZooKeeper ensemble.
//
// A test starts a server and gives each client a link of its own:
//
//	srv := zktest.Start(t)
//	link := srv.Link("a")
//	conn, events, err := zk.Connect(srv.Servers(), 10*time.Second, zk.WithDialer(link.Dial))
//
// Everything works inside a testing/synctest bubble, where time is virtual: an
// expiry after ten seconds or a night without a network takes milliseconds.
// Start the server inside the bubble, use links and not ListenTCP (a real
// socket stops virtual time), and close every client before the bubble ends.
//
// # Guarantees
//
// The server answers as Apache ZooKeeper 3.8.0 does, standalone; conversations recorded with the real one are among
// its tests, and each answer is compared where a real server is installed. TTL nodes, enforced quotas, the super user and
// limits of requests and connections are off or at their defaults, as on a server out of the box: see the options. The
// order of a listing is not sorted, and the same in every run that makes the
// same requests in the same order. A session ends its timeout after the last
// packet that the server has read, rounded up to a whole tick as the real
// server does, or exactly then WithExactExpiry.
//
// A session whose close no ensemble would survive ends this server too, and with it a test that uses Start: see
// Server.Err.
//
// To ACLs of the ip scheme, a client on a link is 127.0.0.1.
//
// # What it cannot show
//
// Faults that need several servers: a follower that is cut off from its leader,
// a lost quorum, stale reads from another server. Use a real ensemble for
// those.
//
// What is stored: a server is empty when it starts. Restart keeps nodes and sessions, a new Server does not.
//
// Of the real server's settings and interfaces, these are deliberately not there: SASL and Kerberos, TLS, x509 and
// plugged-in authentication, digests other than SHA-1, skipACL, reconfiguration (the answer is that of one server), read-only
// mode, local sessions, throttling by load (Server.Throttle is a fault), JMX, the HTTP admin server, metrics beyond those of
// mntr, digests of the tree, znode.container.maxNeverUsedIntervalMs, ZooKeeper 3.9's request encodings.
//
// Where the defaults differ from a real server's, so that tests need no settings: all four-letter words are answered
// (there: srvr), and an address may have any number of connections (there: 60).
package zktest
