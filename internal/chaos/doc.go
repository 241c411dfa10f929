// Package chaos proves the recipes on three real Apache ZooKeeper servers under many faults at once. It has
// nothing but tests, for Linux: "make chaos" runs them for as long as one likes, "go test" for less than a minute.
//
// Client processes (this test binary, in a role) work with locks, elections and queues, and tell each ask, grant
// and end with its time by the clock that all processes of a machine share. Every link, of clients and between
// servers, leads through a proxy. Faults come in bursts drawn from a seed: processes killed and stopped, links
// cut, black-holed and slow, a leader or a follower cut off, a disk full. After a burst all is healed, everybody
// must get on, and come to rest; then the history since the last rest is checked by porcupine against
// sequential models.
//
// Naive holders, which trust their client library, go through the same harness, and must be caught.
package chaos
