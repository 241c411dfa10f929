// Package sim is a seeded simulation: in virtual time, random programs of random clients use the recipes
// while their links, their processes, their clocks and the server fail at random, and checkers look for a
// broken promise. It has nothing but tests. "make sim SEED=1 RUNS=1000" runs any number of seeds.
//
// A seed decides a plan (plan_test.go): the processes, the scenes they play and the faults. A scene
// (scene_test.go) is one recipe at one path, what its actors do at random, and its rules. The world
// (world_test.go) runs a plan in a bubble of its own. When a rule is broken the plan is made smaller for as
// long as it still fails (shrink_test.go), and the history of the smallest is printed.
//
// mutation_test.go checks the checkers: it takes one safeguard after the other out of a copy of the code,
// and each time the simulation must notice.
package sim
