// Package workflow records the steps of work, so that the next executor goes on where one that died has stopped.
//
// A [Ledger] is a node with one record for each finished step. Whoever executes the work opens it with what makes it the executor: a lease, a
// leader's term, or a delivery of a queue. [Step] runs a function and records its result. If the step has a record, Step returns the recorded
// result, and the function is not run.
//
// # Guarantee
//
// A step has at most one record, and the record is written only while the executor stands: in one transaction with its guard. So the servers refuse the record
// of a process that was paused beyond its lease. An executor that has opened a ledger knows all records of those before it.
//
// # Not guaranteed
//
// That a step's effect happens once. A process can die after the effect and before the record; then the next executor runs the step again. Make effects
// idempotent by [Key].ID, which is the same each time, or refuse old executors by [Key].Token.
//
// The guarantee rests on the executors' common lock, election or queue. Two that hold different locks find out when one records what the other has recorded
// ([ErrConflict]). Permits of a semaphore do not exclude each other.
//
// Records are for coordination: at most [MaxSteps] steps, [MaxResult] bytes for a result and [MaxResults] for all of them.
//
// # Nodes
//
//	<path>              persistent: the run's identity, JSON {"v":1,"kind":"ledger","id"}
//	<path>/step-<name>  persistent: a finished step, JSON {"v":1,"result","token","attempts","ms","by"}
//
// Directories above them are containers. [Ledger.Remove] deletes the nodes; until then they stay.
//
// # Failure
//
// Open and Step wait until transient errors, such as a lost connection, have passed, for as long as their context and the executor last. If an argument of NewLedger is
// invalid, every call returns an error that says so.
//
// The idea of named steps that return what is recorded is that of DBOS Transact and River; a guard on the servers in place of a check afterwards is this package's.
package workflow
