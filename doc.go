// Package lockstep runs services that coordinate on Apache ZooKeeper. The recipes are in the
// packages beside it. Each of them can also be used without this package: connect with
// framework.Connect, and call its methods.
//
// # Which package
//
//	one at a time, at most N, readers or a writer       locks
//	one leader                                          election
//	a job once in the cluster                           scheduler
//	work that must not get lost                         queue
//	work in steps that others continue after a crash    workflow
//	start and end a phase together, gates, countdowns   barrier
//	the members of a service, cordon and drain          members
//	instances of services, and pools that pick one      registry
//	settings that change at run time                    config
//	unique numbers and counters                         ids
//	reports of problems with all that                   monitor
//	the client that all of them use                     framework
//	a ZooKeeper in memory for tests, in virtual time    zktest
//
// The package of each recipe says what it guarantees and what it does not. Applications that are
// built with go.uber.org/fx use the modules instead, such as election/electionfx.
//
// # A service
//
// Run connects, runs the parts of a service, answers probes, and stops the parts in order when
// SIGTERM comes. Parts are elections (Lead), registrations (Register), memberships (Join), and
// functions that run until their context ends (Go, Background). They are passed to generic
// functions, so that a program links only the recipes that it uses.
//
// # Guarantee
//
// When Run returns without framework.ErrUnfinished, no function of a part runs any more, and the
// session was closed, or Run has tried to for as long as Client.Close does: others go on at once. A
// part stops after the parts that rest on it: registrations first, functions, elections, what runs
// in the background, memberships, the session.
//
// # Not guaranteed
//
// A function that does not return after its context has ended goes on beyond Run. End the process
// then. A second signal ends the process at once, and so does Kubernetes when
// terminationGracePeriodSeconds are over; then the session lasts until its timeout, unless the
// client has a watchdog (framework.WithWatchdog).
//
// # Failure
//
// While the servers are away, the service is live and not ready, and parts wait. After a lost
// session the recipes go on with the next one by themselves. A panic of a part, an error of its
// function, and refused credentials end the service in order.
package lockstep
