// Package zkserver is one ZooKeeper server in memory. It speaks the
// real wire protocol with any client: go-zookeeper, zkCli.sh, kazoo, Curator.
//
// It answers as a standalone Apache ZooKeeper 3.8.0 does, with the settings in Config.
// testdata/zookeeper-3.8.0.golden is that server's side of a long conversation, and a test compares this server with
// it; package conformance compares every answer of a longer one under three settings. Intended differences:
//
//   - the state is not stored on disk, so Restart is a lever and not a process;
//   - the order of a listing is the same in every run, where the real
//     server has hash order. Neither is sorted, and clients must not rely on either;
//   - one check removes all expired containers and TTL nodes, where the real server removes at most 10,000
//     a minute;
//   - by default, the server answers all four-letter words, and an address may have any number of
//     connections; the real defaults are srvr and 60;
//   - the first frame of a connection has 1 kB at most, and a connection 64
//     identities of 1 MiB at most;
//   - if the usage of a quota does not parse, it is not counted. A real server exits;
//   - no SASL, TLS, x509, plugged-in authentication, disabled or other digests,
//     no reconfiguration, read-only mode, local sessions, throttling by
//     load (Throttle is a fault), HTTP admin server, JMX, no digests of the tree.
//
// # Modules
//
// The data tree (datatree.go, node.go, quota.go, acl.go) changes in transactions (transaction.go, operations.go) and knows neither
// sessions nor connections. The session tracker and the watch manager stand alone too. The database joins the three under one zxid.
// A connection has an outgoing queue. The request processor does the requests of all connections on the database; the four-letter
// commands read from both; the fault injector sees each request. The server owns the mutex that guards all of them, the listeners and the
// timers, and its levers are for tests. A follower, if the configuration asks for them, stands between a connection and the processor.
//
// Each connection has a goroutine that reads and one that writes; the only others are callbacks of timers. The server takes
// time from package time and waits only on channels, conditions and
// connections, so that it runs unchanged in a testing/synctest bubble. Close ends all of its goroutines and timers.
package zkserver
