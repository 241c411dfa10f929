// Package zkserver is one ZooKeeper server, wholly in memory, that speaks the
// real wire protocol to any client: go-zookeeper, zkCli.sh, kazoo, Curator.
//
// It answers as a standalone Apache ZooKeeper 3.8.0 does, with the settings that Config has a field for.
// testdata/zookeeper-3.8.0.golden is that server's side of a long conversation, and a test holds this one to
// it; package conformance compares every answer of a longer one under three settings. Differences that are meant:
//
//   - nothing is stored on disk, so Restart is a lever and not a process;
//   - a listing has its own order, repeatable from run to run, where the real
//     one has hash order. Neither is sorted, and neither is to be relied on;
//   - containers and TTL nodes that are due go in one pass, not paced to 10,000
//     a minute;
//   - all four-letter words are answered, and an address may have any number of
//     connections, unless Config says otherwise; the real defaults are srvr and 60;
//   - the first frame of a connection has 1 kB at most, and a connection 64
//     identities of 1 MiB at most;
//   - a quota whose usage does not parse goes uncounted. A real server ends over it;
//   - no SASL, TLS, x509, plugged-in authentication, disabled or other digests,
//     no reconfiguration, read-only mode, local sessions, throttling by
//     load (Throttle is a fault), HTTP admin server, JMX, no digests of the tree.
//
// All state is behind one mutex. Each connection has a goroutine that reads and
// one that writes; there are no others but timers' callbacks. The server takes
// time from package time only and waits on nothing but channels, conditions and
// connections, so that it runs unchanged in a testing/synctest bubble, where
// Close leaves nothing behind.
package zkserver
