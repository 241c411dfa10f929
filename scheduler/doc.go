// Package scheduler runs jobs on cron schedules, each tick once in a whole cluster.
//
// # Guarantee
//
// A tick is identified by its scheduled time. It runs at most once in the cluster, also if the
// members' clocks differ or they disagree about the members. A run starts only after the
// transaction that claims its tick is known to be applied. That transaction moves the job's state
// on by its version, creates the run's claim, and is guarded by the leader's term or the member's
// node. A tick that does not run is recorded, with the reason: State.Fired plus State.Missed are
// always all due ticks. A run's context ends before another member can take its claim for lost, as
// long as this process is scheduled. Under OverlapForbid and OverlapReplace, no run of a job starts
// while another has its claim.
//
// If a member dies while it runs a job with [AtLeastOnce], another member repeats the run as a
// further attempt.
//
// # Not guaranteed
//
// That a tick runs: see [Misfire]. A function that ignores its context, or a process that was
// stopped for a while, may overlap the next run: pass [Run].Token to the systems that the function
// writes to. The member's own clock counts, as long as it is within [MaxAhead] of the ensemble's. A
// tick runs at most MaxAhead before its time by the ensemble's clock. If a member's clock is
// further behind, its ticks run MaxAhead late by the ensemble's clock, once that clock has differed
// for a minute; see [EventBehind]. That the job's owner runs it: while members come and go, or if
// they may not read each other's nodes, two members may both take themselves for the owner. The
// first of them to claim a tick runs it.
//
// # Members
//
// The leader owns the jobs of [OnLeader]. A job of [Spread] is owned by one of the members that
// have the job and its labels. The owner waits for the job's ticks; the other members send no
// requests for it. A tick costs two transactions with any number of members: one to claim it and
// one to record the outcome.
//
// Members with jobs of OnLeader campaign; members with jobs of Spread alone stay out of the
// election. All candidates should have the same jobs of OnLeader: while the leader lacks one, its
// ticks wait, and then run or are missed by the misfire policy. When a member is gone, the next
// owners of its jobs handle the ticks that were due meanwhile.
//
// When a scheduler is stopped, its jobs belong to others at once, and its runs may finish
// within the grace. Their claims keep other members from starting the same jobs.
//
// # Schedules of several releases
//
// A job's spec and zone are stored. A member that is started with others replaces them, unless its
// Revision is lower than the stored one. Of releases that run side by side, the highest Revision
// counts, and among equals the member that was started last. Members of the other release go on
// running the job, by the stored schedule. A schedule that [Scheduler.Reschedule] has stored stays
// until a release comes with a schedule that differs from the replaced one. Functions and policies
// are each member's own; the stored Description and jitter are for reports.
//
// # What is wrong
//
// [Scheduler.Inspect] reports on a job: the members that have it, the one that runs it, overdue
// ticks, and findings in words. Only Inspect finds a job that no member runs: members know nothing
// of jobs that they do not have.
//
// # Changes of the clocks
//
// Fields are local times of the job's zone. "30 2 * * *" in New York does not run on the day in
// March on which the clock goes from 2:00 to 3:00; "0 0 * * *" in Cairo or São Paulo does not on a
// day that begins at 1:00. "30 1 * * *" runs once on the day in November on which 1:30 comes twice,
// the first time; "30 * * * *", with * for the hour, runs both times. Choose UTC, or an hour that
// no change touches, for jobs that must run every day.
//
// # Nodes
//
//	<path>/election             the members' election, see package election
//	<path>/members/<member>     ephemeral, one for each member; its id, its labels and the hashes of its jobs' names as JSON
//	<path>/changes              persistent; which jobs were changed last beside being run. All members watch it
//	<path>/removed              persistent; which jobs were removed in the last day
//	<path>/jobs                 container; members set it without data to learn the ensemble's time
//	<path>/jobs/<name>          persistent; the job's State as JSON. After Remove it stays for a day
//	<path>/jobs/<name>/run-<n>  ephemeral while run n goes on; data is the id of the member that runs it
//	<path>/jobs/<name>/past-<k> persistent; the record of an ended run. WithHistory is their number: run n is in past-<n modulo WithHistory>
//
// Unknown fields survive being rewritten, except in the entries of three lists: a state's replaced
// schedules, the changes, and the removed jobs. Records of newer versions are refused. To remove a
// job, use [Scheduler.Remove]. If an operator deletes a job's node by hand, members stop running
// the job when they notice. A member that is started with the job registers it again, and may
// repeat a tick that was run ahead of its time.
//
// # Failure
//
// While the connection is suspended no run starts; runs go on until the session's proof of life
// ends. If the reply to a claim is lost, the member reads the state again on the same session. If
// that session is lost first, the run does not start and counts as lost. A member tries to write a
// run's outcome until it is known to be written, or the session is lost and the claim with it. In
// that case the job's next owner records the run as lost, as soon as the servers have noticed.
package scheduler
