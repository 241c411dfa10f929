// Package locks has fair locks on ZooKeeper: [Mutex], [RWLock], [Semaphore], [Claim] and
// [MultiLock]. Every grant is a [Lease].
//
// # Guarantee
//
// There are no two holders: a lease's context is done before the servers can grant the lock again,
// as long as the holder's process is scheduled. The same holds for a writer beside a reader, and
// for more permits than the limit. Grants are in the order of joining, except for a [Claim]. A wait
// that has ended leaves no node behind, even if the connection or a reply was lost. It leaves no
// watch but the shared watch of a node that still exists.
//
// # Not guaranteed
//
// A paused process (SIGSTOP, a paused virtual machine) may act after its lease has ended, before it
// checks the context. What the lock protects must refuse such late writes: by [Lease.Token], which
// rises with every grant, or within ZooKeeper by [Lease.Guard].
//
// # Arguments
//
// Constructors create no nodes and return no errors: a wrong path, option or number makes every
// call of the lock fail with an error that says so.
//
// # Nodes
//
//	<path>                         container, removed by the server when empty
//	<path>/_c_<uuid>-lock-#        ephemeral sequential; data is JSON, as in all below:
//	                               {"v":1,"owner","host","pid","since","trace"}
//	<path>/_c_<uuid>-__READ__#     the same of a reader, __WRIT__ of a writer
//	<path>/locks, leases, permits  a semaphore's waiters, held permits and number; see [Semaphore]
//	<path>~waits/_c_<uuid>-ask-#   ephemeral: a request that has waited for a second under a lease;
//	                               see [WithDeadlockMode]
//	<path>                         a claim: ephemeral itself; its guard's node is beside it, see [Claim]
//
// Children of other names do not count. Contenders of another kind make every call fail with
// [framework.ErrForeign].
//
// # Failure
//
// While the connection is suspended, waiters keep their places and leases stand until the session's
// proof of life ends. When the session is lost, leases end with framework.ErrSessionLost as their
// cause, and waiters join again on the next session.
//
// # Deadlocks
//
// Request a lock with the context of the lease that you hold meanwhile. Then Lockstep finds holders
// that wait for each other, in any processes: the youngest request fails with a [*DeadlockError].
// [Deadlocks] lists such cycles. docs/deadlocks.md says which deadlocks Lockstep finds.
//
// # Inspection
//
// [Inspect] reports the holders and waiters of a lock of any kind, also of Curator's and kazoo's;
// [List] finds all locks below a path. They only read.
package locks
