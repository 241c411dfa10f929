// Package monitor reports when a problem with the locks, jobs or queues below a path begins, and
// when it ends.
//
// Run a [Monitor] in several processes. One of them leads; the others stand by. At an interval the
// leader reads all locks, jobs, queues and workflows below the path: this is a scan. A problem that
// scans see is a [Finding]: many waiters, a long hold, an overdue job, a growing queue and so on;
// see [Problem]. A finding begins after several scans in a row have seen it, and ends after several
// scans in a row without it ([WithHysteresis]). The leader reports each begin and each end as an
// [Event]: in the log, in metrics, and to the function of [WithOnEvent]. [Check] scans once.
//
// # Guarantee
//
// A leader records the findings that have begun before it reports them, in a transaction that only
// the leader can make. So the next leader continues where the former one stopped: it does not
// report a finding again that persists, and it reports the end of a finding that began under
// another leader. A scan whose reads fail has no effect. If a scan could not read a path, or had to
// leave it out, the findings there stay as they were.
//
// # Not guaranteed
//
// That each event is reported exactly once. If the leader dies or loses its connection while it
// reports an event, or cannot write the record after that, the event is reported again, with the
// same ID. If the function of WithOnEvent returns an error, the leader calls it again after the
// next scans, three times in all. Two processes may call their functions at the same time if the
// function does not return when its context ends, or if a leader's process stood still while its
// term ended.
//
// A monitor sees what the servers store. ZooKeeper does not say when it last heard from a session.
// So a monitor does not find a stuck process whose client still answers the servers, unless the
// process was asked to release a lock; see [ProblemSilent]. It does not find a problem that is over
// before enough scans have seen it. The waiting processes find deadlocks themselves, and end them;
// a monitor finds those that they only report (locks.WithDeadlockMode).
//
// # Nodes
//
//	<path>             container
//	<path>/election    the monitors, in the layout of package election; its mtime is the time of the latest scan
//	<path>/findings    persistent: the findings that have begun, JSON {"v":1,"root","findings"}
//
// A monitor writes no other nodes.
//
// # Cost
//
// A scan reads up to a thousand nodes in one request: about 20 requests for 1,000 locks of 5 nodes,
// and about 190 for 10,000 locks, 1,000 jobs and 1,000 queues. It reads at most 100,000 nodes of
// locks, and 100,000 directories for jobs and queues. If there are more, a finding
// ([ProblemLeftOut]) says so. A scan keeps at most 2,000 findings; after a scan that has seen more,
// no finding ends. At most 500 findings are open at a time.
//
// # Failure
//
// Run stands by, or scans again the next interval, until transient errors have passed. A leader
// that loses its session stops scanning before another one leads.
package monitor
