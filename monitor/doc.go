// Package monitor tells when something is wrong with the locks, jobs and queues below a path, and when it is right again.
//
// Every process that should keep watch runs a [Monitor]. One of them leads and looks at an interval; the others stand by. What is wrong is a
// [Finding]: many waiters, a long hold, an overdue job, a growing queue and so on, see [Problem]. A finding begins after it was seen at several looks in a
// row and ends after several looks without it ([WithHysteresis]). Its begin and its end are told as an [Event] each: as a log line, in metrics, and to the function of
// [WithOnEvent]. [Check] looks once.
//
// # Guarantee
//
// At most one process tells at a time. Findings that have begun are recorded, in a transaction that only the leader can make, before they are told. So the
// next leader goes on where the one before stopped: a finding that persists is not told again, and an end is told although it began under another leader.
// A look whose reads fail changes nothing, and what a look could not read, or had to leave out, neither begins nor ends.
//
// # Not guaranteed
//
// That an event is told exactly once. If the leader dies, or its connection is lost, right when it tells an event, the next one tells it again, with the same ID. If the
// function of WithOnEvent returns an error, the event is told again after the next looks, three times in all.
//
// A monitor sees what the servers store. ZooKeeper does not tell when another session was heard last, so a process that is stuck while its client
// still answers the servers is only found if it was asked to let go, see [ProblemSilent]. What lasts less than the looks that
// begin a finding is not found. Deadlocks are found by the processes themselves; see package locks.
//
// # Nodes
//
//	<path>             container
//	<path>/election    the monitors, in the layout of package election; its mtime is the time of the latest look
//	<path>/findings    persistent: the findings that have begun, JSON {"v":1,"root","findings"}
//
// Nothing is written elsewhere.
//
// # Cost
//
// A look takes about 20 requests for 1,000 locks of 5 nodes, and more for each scheduler, job and queue. It leaves out what lies beyond 100,000 nodes of locks, and beyond 20,000 directories
// for jobs and queues, and says so by a finding.
//
// # Failure
//
// Run stands by, or looks again at the next interval, until transient errors have passed. A leader that loses its session stops looking before another one leads.
package monitor
