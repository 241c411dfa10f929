// Package scheduler runs jobs on cron schedules, each tick once in a whole cluster.
//
// # Guarantee
//
// A tick is identified by its scheduled time. It is run at most once in the cluster, whatever the members'
// clocks say and whoever they think is there: a run starts only once the transaction that claims its tick is
// known to be applied, which moves the job's state on by its version, creates the run's claim and is guarded
// by the leader's term or the member's node. A tick that is not run is recorded, with the reason:
// State.Fired plus State.Missed are always all the ticks that were due. A run's context is done before
// another member can take its claim for lost, as long as this process is scheduled. Under OverlapForbid and
// OverlapReplace, no run of a job starts while another has its claim.
//
// Of a job of the guarantee [AtLeastOnce], a run whose member died is run again, as a further attempt.
//
// # Not guaranteed
//
// That a tick is run: see [Misfire]. A function that ignores its context, or was stopped in a process that was,
// may overlap the next run: pass [Run].Token to what it writes to. The time of day is the member's own, as long as
// it is within [MaxAhead] of the ensemble's: a tick is run at most MaxAhead before its time by the ensemble's clock. A member
// whose clock is further behind runs ticks MaxAhead late by the ensemble's clock, once that has said so for a minute; see
// [EventBehind]. That a job is run by the member that it belongs to: while members come and go, two may see
// different members, and whichever claims a tick first runs it.
//
// # Members
//
// A job of [OnLeader] belongs to the member that leads, one of [Spread] to one of those that have the job and
// its labels. Whoever it belongs to waits for its ticks; the others ask the servers for nothing. A tick costs
// two transactions, one to claim and one to record the outcome, however many members there are.
//
// Members that have jobs of OnLeader campaign; one with jobs of Spread alone does not. All that campaign should
// have the same jobs of OnLeader: while the leader lacks one, its ticks wait, and are then run or missed by the misfire
// policy. When a member is gone, those that get its jobs look at what was
// due meanwhile.
//
// When a scheduler is stopped, its jobs belong to others at once, and the runs that go on here may finish
// within the drain time; their claims keep others from starting the same jobs.
//
// # Schedules of several releases
//
// A job's spec and zone are stored. A member that is started with others replaces them, unless its Revision is
// lower than the stored one: of releases that run side by side, the one of the highest Revision counts, and
// among equals the one whose member was started last. Members of the other release go on running the job, by
// the stored schedule. So does what [Scheduler.Reschedule] has stored, until a release comes whose schedule
// differs from the one that was replaced. Functions and policies are each member's own.
//
// # Changes of the clocks
//
// Fields are local times of the job's zone. "30 2 * * *" in New York does not run on the day in March on
// which the clock goes from 2:00 to 3:00; "0 0 * * *" in Cairo or São Paulo does not on a day that begins at
// 1:00. "30 1 * * *" runs once on the day in November on which 1:30 comes twice, the first time;
// "30 * * * *", whose hour is *, runs both times. Choose UTC, or an hour that no change touches, for what
// must run every day.
//
// # Nodes
//
//	<path>/election             the members' election, see package election
//	<path>/members/<member>     ephemeral, one for each member; its id, labels and jobs as JSON
//	<path>/changes              persistent; which jobs were changed last beside being run. All members watch it
//	<path>/removed              persistent; which jobs were removed in the last day
//	<path>/jobs                 container; members write no data to it, to learn the ensemble's time
//	<path>/jobs/<name>          persistent; the job's State as JSON. Of a job that was removed it stays for a day
//	<path>/jobs/<name>/run-<n>  ephemeral while run n goes on; data is the id of the member that runs it
//	<path>/jobs/<name>/past-<k> persistent; the record of a run that has ended, a ring of as many as WithHistory
//
// Unknown fields survive being rewritten; what a newer version has written is refused. To remove a job, use
// [Scheduler.Remove]. A job whose node somebody has deleted is run no more by the members that notice; one that is
// started with it registers it anew, and may run a tick again that was run ahead of its time.
//
// # Failure
//
// While the connection is suspended nothing is started; runs go on until the session's proof of life
// ends. A claim whose reply was lost is settled by reading back on the same session; if that is lost
// first, the run does not start and counts as lost. A run's outcome is written until it is known to be,
// or the session is lost and the claim with it; then whoever has the job next records the run as lost, and
// does so as soon as the servers have noticed.
package scheduler
