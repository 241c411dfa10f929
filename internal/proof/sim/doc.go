// Package sim is a seeded simulation in virtual time. Random clients run random recipes while their
// links, processes, clocks and the server fail at random, and checkers look for violations of the
// guarantees. It has only tests. "make sim SEED=1 RUNS=1000" runs any number of seeds.
//
// A seed decides a plan (plan_test.go): the processes, their workloads and the faults. A workload
// (workload_test.go) is one recipe at one path, what its actors do at random, and its rules. The
// simulation (simulation_test.go) runs a plan in a bubble of its own. If a rule is broken, the plan
// is reduced while it still breaks that rule (shrink_test.go), and the history of the smallest plan
// is printed.
//
// mutation_test.go tests the checkers: it removes one safeguard at a time from a copy of the code,
// and each time the simulation must report a violation.
package sim
