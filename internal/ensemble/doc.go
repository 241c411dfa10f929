// Package ensemble runs real Apache ZooKeeper servers for tests and benchmarks.
//
// [Start] starts one server or several as child processes on free loopback
// ports, with their data in a temporary directory, and returns once all of them
// serve and one leads. [Ensemble.Close] ends them and removes the data. Servers
// can be killed, restarted and frozen; with [Config.Links] the connections
// between them run through proxies in this process and can be held in either
// direction, which is how a follower is cut off from its leader while clients
// still reach it. A [Proxy] does the same between a client and a server.
//
// With [Config.Observers] some servers follow without a vote, and with [Config.ObserverMasters] they get their packets from a follower.
//
// Tests use [Shared] for the healthy ensemble that "make test" starts once for
// all packages, and [Private] for one of their own to break.
//
// The servers come from Debian's zookeeper package, or from the directory of a
// released tarball that ZOOKEEPER_HOME names; a Java runtime is needed. On Linux
// the servers die with the process that started them, also when it is killed.
package ensemble
