// Package scheduler runs jobs on cron schedules, each tick once in a whole cluster.
//
// # Guarantee
//
// A tick is identified by its scheduled time. It is run at most once in the cluster, whatever the members'
// clocks say: a run starts only once the transaction that claims its tick is known to be applied, which
// moves the job's state on by its version, creates the run's claim and is guarded by the leader's term. A
// tick that is not run is recorded, with the reason; State.Fired plus State.Missed are always all the ticks
// that were due. Runs of one job do not overlap: a tick that is due while a run goes on is missed. The
// context of a run is done before another member can run the job, as long as this process is scheduled.
//
// # Not guaranteed
//
// That a tick is run: a run whose member died is not repeated; the tick is recorded as missed, with the
// reason "runner lost", by the next look at the job, at its next tick at the latest. A job that ignores its
// context, or was stopped in a process that was, may overlap the next run: pass [Run].Token to what it
// writes to. The time of day is the leader's own: a tick is run up to [MaxAhead] before its time by the
// ensemble's clock, and as late as the leader's clock is behind.
//
// # Members
//
// One member leads, and runs the jobs that it has; all members should have the same. The ticks of a job that
// the leader does not have are found, and recorded as missed, by the next one that has it. The spec and zone are
// stored when a job is first run, and no tick before that is due; a member that has others for a
// name is refused with [ErrSpecMismatch].
//
// When a leader is gone, the next one looks at what was due meanwhile. The latest tick is run if it is
// younger than the job's Deadline, the others are recorded in one [Gap].
//
// When a scheduler is stopped, it resigns at once, so that another member leads, and the runs that go on here
// may finish within the drain time; their claims keep others from starting the same jobs.
//
// # Changes of the clocks
//
// Fields are local times of the job's zone. "30 2 * * *" in New York does not run on the day in March on
// which the clock goes from 2:00 to 3:00. "30 1 * * *" runs once on the day in November on which 1:30 comes
// twice, the first time; "30 * * * *", whose hour is *, runs both times. Choose UTC, or an hour that no
// change touches, for what must run every day.
//
// # Nodes
//
//	<path>/election             the members' election, see package election
//	<path>/jobs                 container; each new leader writes no data to it, to learn the ensemble's time
//	<path>/jobs/<name>          persistent; the job's State as JSON
//	<path>/jobs/<name>/run      ephemeral while the job runs; data is the run's ID
//
// Unknown fields of the state survive being rewritten; a state of a newer version is refused. Deleting a
// job's state makes the next leader register it anew.
//
// # Failure
//
// While the connection is suspended nothing is started; runs go on until the session's proof of life
// ends. A claim whose reply was lost is settled by reading back on the same session; if that is lost
// first, the run does not start and the tick is recorded as missed. A run's outcome is written until it is
// known to be, or the session is lost and the claim with it.
package scheduler
