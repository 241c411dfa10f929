// Package workflow records the finished steps of some work. When its executor dies, the next
// executor goes on at the first unfinished step.
//
// A [Ledger] is a node with one record for each finished step. An executor opens it with a lease, a
// leader's term, or a delivery of a queue, and gets an [OpenLedger]. [Step] runs a function and
// records its result. If the step has a record, Step returns the recorded result and does not run
// the function.
//
// [Workflows] keeps runs on the servers and executes them. A [Kind] has a name and the types of
// input and result. [Kind.Start] puts a run into a queue. A member that has registered the kind's
// [Function] takes the run and calls the function with a [Run]. When that member dies, another
// member goes on at the first unfinished step. The process that started the run need not live until
// the run's end, and a run may wait for days.
//
// # Guarantee
//
// A step has at most one record, written in one transaction with the executor's guard. So the
// servers refuse the record of an executor that has ended, also if its process was paused and has
// not noticed. An executor that has opened a ledger knows all earlier records.
//
// A step that has failed permanently ([ErrStepFailed]) has a record, too, and is not run again:
// what a run does after that error, such as a refund, does not meet a later success of the step.
//
// Members execute a started run until it has finished: done, failed or cancelled. At each moment at
// most one executor has the run: its context ends before another one's begins, as long as its
// process is scheduled. A waiting run goes on after each signal, each end of a child and each time
// that it waits for.
//
// # Not guaranteed
//
// That a step's effect happens once. A process can die after the effect and before the record; then
// the next executor runs the step again. Make effects idempotent by [Key].ID, which is the same
// each time, or refuse old executors by [Key].Token.
//
// The guarantee rests on one lock, election or queue that all executors of a ledger share. Two
// executors with different locks notice it only when the second one records the same step
// ([framework.ErrConflict]). Permits of a semaphore do not exclude each other.
//
// Records are for coordination: at most [MaxSteps] steps, [MaxResult] bytes for a result and
// [MaxResults] for all results.
//
// # Nodes
//
//	<path>              persistent: the ledger's UUID, JSON {"v":1,"kind":"ledger","id"}
//	<path>/step-<name>  persistent: a finished step, JSON {"v":1,"result","token","attempts","ms","by"};
//	                    one that has failed permanently: {"v":2,"failure":{"error","is"},"token",…}
//
//	<path>/runs, queues, ended, failed, kept, sweeper   the runs of Workflows; see docs/layouts.md
//
// Directories above them are containers. [Ledger.Remove] deletes the nodes of a ledger. Runs are
// deleted some time after they have finished ([WithRetention]).
//
// # Failure
//
// Open and Step repeat their requests after transient errors, such as a lost connection, until
// their context or the executor ends. If an argument of NewLedger or New is invalid, every call
// returns an error that says so. A member that loses its session loses its runs to other members;
// its Work goes on with the next session.
//
// # Where to read
//
//	runstore.go    the nodes of runs, and reading them
//	lifecycle.go   all changes of a run: suspend, cancel, retry, finish, each one transaction
//	start.go       starts of runs; signals.go signals
//	execute.go     what an executor does with a delivery
//	kind.go        Kind and Handle: starts, children, results; function.go what members execute
//	run.go         Run; waits.go Sleep, Await, and what Child does
//	step.go        Step, and Do and Parallel of both recorders; stepfailure.go permanent failures
//	branches.go    waits in a function of Parallel beside others that work
//	ledger.go      Ledger; open.go OpenLedger
//
// Named steps that return recorded results are an idea of DBOS Transact and River. In place of
// their check afterwards, here a guard makes the servers refuse a former executor.
package workflow
