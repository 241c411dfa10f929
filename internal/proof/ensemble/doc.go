// Package ensemble runs real Apache ZooKeeper servers for tests and benchmarks.
//
// [Start] starts one server or several as child processes on free loopback
// ports, with their data in a temporary directory, and returns when all of them
// serve and one leads. [Ensemble.Close] stops them and removes the data. Servers
// can be killed, restarted and frozen. With [Config.Links] the connections
// between them run through proxies in this process, which can hold each
// direction: so a follower can be cut off from its leader while clients
// still reach it. A [Proxy] does the same between a client and a server.
//
// With [Config.Observers] some servers follow without a vote, and with [Config.ObserverMasters]
// they get their packets from a follower.
//
// Tests use [Shared] for the healthy ensemble that "make test" starts once for
// all packages, and [Private] for an ensemble of their own, which they may break.
//
// The servers come from Debian's zookeeper package, or from the directory of a
// released tarball that ZOOKEEPER_HOME names; a Java runtime is needed. On Linux
// the servers die with the process that started them, also when it is killed.
package ensemble
