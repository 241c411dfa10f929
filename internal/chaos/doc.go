// Package chaos proves the recipes on three real Apache ZooKeeper servers under many faults at once. It has only tests, for Linux:
// "make chaos" runs them for a given time, "go test" until every kind of fault was injected, which takes about a minute.
//
// Client processes (this test binary, re-executed) use locks, elections, queues, values, ids, a registry and a group of members. They
// write each request, grant and end, and what followers are shown, with its time, read from a clock that all processes of the machine share. Every link leads through a proxy. Faults come in bursts drawn from
// a seed: processes killed and stopped, links cut, black-holed and slow, a leader or a follower cut off, a full disk. After a burst
// all faults are healed, all clients must make progress, and then stop. porcupine checks the history since the last stop against
// sequential models.
//
// Naive holders and readers, which trust their client library, run in the same harness, and the models and checkers must catch them.
package chaos
