// Package chaos tests the recipes on three real Apache ZooKeeper servers under many concurrent
// faults. It has only tests, for Linux: "make chaos" runs them for a given time, "go test" until
// every kind of fault was injected, which takes about a minute.
//
// Client processes run this test binary. They use locks, elections, queues, values, ids, a
// registry, a group of members, and workflows. They write each request, grant and end, and what
// each follower is shown, with its time, read from a clock that all processes of the machine share.
// Every link leads through a proxy. Faults come in bursts that are drawn from a seed: processes
// killed and stopped, links cut, black-holed and slow, a leader or a follower cut off, a full disk.
// After a burst all faults are healed, and all clients must make progress. Then they rest. The
// history from one rest to the next is a segment. porcupine checks its grants and items against
// sequential models, and checkers check values, ids, instances, members and runs.
//
// Naive holders and readers, which trust their client library, run in the same harness. The models
// and the checkers must catch them.
//
// To add a fault, add an entry to faultKinds, with a function that takes a target by claimTarget
// and returns the function that undoes the fault. To add a workload, add an actor to workloads, the
// events that it writes to events_test.go, and the rule that its history must obey: a holdRule for
// a hold, a model for items, or a check of serviceChecker or runChecker. Each rule needs short
// histories that it accepts and rejects (checker_cases_test.go, services_cases_test.go,
// runs_cases_test.go), and should have a naive client that breaks it.
package chaos
