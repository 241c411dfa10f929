// Package apache holds Apache ZooKeeper itself to the conformance suite, and this
// module's in-memory server to Apache ZooKeeper, answer by answer. It has nothing but
// tests, all of which need real servers.
package apache
