// Package locks is Lockstep's core layer: fair locks on ZooKeeper that hand back a [Lease].
//
// # Guarantee
//
// Two holders never: a lease's context is done before the servers can grant the lock to somebody else,
// as long as the holder's process is scheduled; nor a writer beside a reader, nor more permits than
// there are. Grants are in the order of asking, but for a [Claim]'s. Nothing is left behind by a wait
// that ended, whatever was lost on the way: no node, and no watch but the shared one on a node that
// still exists.
//
// # Not guaranteed
//
// A process that was stopped (SIGSTOP, a paused virtual machine) may act after its lease has ended,
// before it looks at the context. Whatever the lock protects must refuse what comes late: by
// [Lease.Token], which rises with every grant, or within ZooKeeper by [Lease.Guard].
//
// # Nodes
//
//	<path>                         container, removed by the server when empty
//	<path>/_c_<uuid>-lock-#        ephemeral sequential; data is an [Owner] as JSON, as in all below
//	<path>/_c_<uuid>-__READ__#     the same of a reader, __WRIT__ of a writer
//	<path>/locks, leases, permits  a semaphore's waiters, held permits and number; see [Semaphore]
//	<path>                         a claim: ephemeral itself; its guard's node is beside it, see [Claim]
//
// Children of other names are ignored. Contenders of another kind make every ask fail with
// [ErrKindMixed].
//
// # Failure
//
// While the connection is suspended, waiters keep their places and leases stand until the session's
// proof of life ends. When the session is lost, leases end with framework.ErrSessionLost as their
// cause, and waiters queue again on the next session.
//
// # Looking
//
// [Inspect] tells who holds a lock and who waits for it, whatever kind it is and whoever made it; [List]
// finds all locks below a path. They write nothing and take part in nothing.
package locks
