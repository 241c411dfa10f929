// Package zkserver is one ZooKeeper server in memory. It uses the
// real wire protocol, so any client can connect: go-zookeeper, zkCli.sh, kazoo, Curator.
//
// It answers as a standalone Apache ZooKeeper 3.8.0 with the settings in Config.
// testdata/zookeeper-3.8.0.golden has the answers of such a server to many requests, and a test
// compares this server's answers with them. Package conformance compares more answers, under three
// settings. Intended differences:
//
//   - the state is not stored on disk, so Restart is a method and does not restart a process;
//   - the order of a list of children is the same in each run, while the real
//     server has hash order. Neither order is sorted, and clients must not rely on one;
//   - one check removes all expired containers and TTL nodes, while the real server removes at most
//     10,000 a minute;
//   - by default, the server answers all four-letter words, and an address may have any number of
//     connections. The real defaults are srvr and 60;
//   - the first frame of a connection has 1 kB at most, and a connection has 64
//     identities at most, with 1 MiB together;
//   - if the usage of a quota does not parse, this server does not count it. A real server exits;
//   - there is no SASL, TLS, x509 or plugged-in authentication, and digests cannot be disabled or
//     changed;
//   - there is no reconfiguration, read-only mode, local session, throttling by
//     load (Throttle is a fault), HTTP admin server, JMX, and no digest of the tree.
//
// # Modules
//
// The data tree (datatree.go, node.go, quota.go, acl.go) changes in transactions (transaction.go,
// operations.go). It uses neither sessions nor connections. The session tracker and the watch
// manager do not use other parts either. The database has the three, and numbers their changes by
// zxid. A connection has an outgoing queue. The request processor applies the requests of all
// connections to the database. The four-letter commands read from the database and the connections.
// The fault injector sees each request. With Config.Followers a follower is between a connection
// and the processor. The server owns the listeners, the timers, and the mutex that guards all of
// these. Its levers are for tests.
//
// Each connection has a goroutine that reads and one that writes. The only other goroutines are
// callbacks of timers. The server reads the time from package time and waits only for channels,
// conditions and connections, so it runs unchanged in a testing/synctest bubble. Close ends all of
// its goroutines and timers.
package zkserver
