// Package zkserver is one ZooKeeper server, wholly in memory, that speaks the
// real wire protocol to any client: go-zookeeper, zkCli.sh, kazoo, Curator.
//
// It answers as a standalone Apache ZooKeeper 3.8.0 does with
// zookeeper.extendedTypesEnabled=true and a whitelist of the four-letter words
// ruok, isro, srvr, stat, mntr, wchs, cons, conf, envi, srst and crst;
// testdata/zookeeper-3.8.0.golden is that server's side of a long conversation,
// and a test holds this one to it. Differences that are meant:
//
//   - nothing is stored on disk, so Restart is a lever and not a process;
//   - a listing has its own order, repeatable from run to run, where the real
//     one has hash order. Neither is sorted, and neither is to be relied on;
//   - containers and TTL nodes that are due go in one pass, not paced to 10,000
//     a minute;
//   - no quotas, SASL, TLS, reconfiguration or read-only mode.
//
// All state is behind one mutex. Each connection has a goroutine that reads and
// one that writes; there are no others but timers' callbacks. The server takes
// time from package time only and waits on nothing but channels, conditions and
// connections, so that it runs unchanged in a testing/synctest bubble, where
// Close leaves nothing behind.
package zkserver
