// Package apache runs the conformance suite on Apache ZooKeeper itself, and compares
// the answers of this module's in-memory server with those of Apache ZooKeeper. It has
// only tests, and all need real servers.
package apache
