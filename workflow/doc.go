// Package workflow records the steps of work, so that the next executor goes on where one that died has stopped.
//
// A [Ledger] is a node with one record for each finished step. Whoever executes the work opens it with what makes it the executor: a lease, a
// leader's term, or a delivery of a queue. [Step] runs a function and records its result. If the step has a record, Step returns the recorded
// result, and the function is not run.
//
// [Workflows] keeps runs on the servers and executes them: whoever starts a run need not live until its end, and a run may wait for days. [Workflows.Start] puts it into
// a queue, a member that has registered the run's [Kind] takes it, and when that member dies, another one goes on at the first unfinished step.
//
// # Guarantee
//
// A step has at most one record, and the record is written only while the executor stands: in one transaction with its guard. So the servers refuse the record
// of a process that was paused beyond its lease. An executor that has opened a ledger knows all records of those before it.
//
// A run that was started is executed until it has finished: done, failed or cancelled. One executor at a time has it: its context ends before another one's
// begins, as long as its process is scheduled. A run that waits misses no signal, no end of a child and no time.
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
//	<path>/runs, queues, ended, sweeper   the runs of Workflows; see docs/layouts.md
//
// Directories above them are containers. [Ledger.Remove] deletes the nodes; until then they stay.
//
// # Failure
//
// Open and Step wait until transient errors, such as a lost connection, have passed, for as long as their context and the executor last. If an argument of NewLedger is
// invalid, every call returns an error that says so. An executor that loses its session loses its runs, and Work goes on with the next session.
//
// # Where to read
//
//	lifecycle.go   all changes of a run: start, suspend, signal, cancel, retry, finish, each one transaction
//	execute.go     what an executor does with a delivery
//	waits.go       Sleep, Await, Child, Parallel
//	run.go         Step; ledger.go and open.go the ledger
//
// The idea of named steps that return what is recorded is that of DBOS Transact and River; a guard on the servers in place of a check afterwards is this package's.
package workflow
