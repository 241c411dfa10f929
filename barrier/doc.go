// Package barrier lets processes wait for one another: at a [Gate], until it is lowered; in a
// [DoubleBarrier], which its members enter and leave together, round after round; and at a [Latch],
// until it was counted down to zero.
//
// # Guarantee
//
// A round of a double barrier begins for all of its members or not at all, by one transaction that
// finds all members alive. It ends when each member has left or is dead. The same path can be used
// again at once: a node's version tells a round from the one before, so the remains of a crash do
// not let a later round in. A member that dies while it waits frees its place. A member that dies
// inside lets the others leave. A wait that ends with its context leaves no node. Waits survive a
// suspended connection, a server's restart and the loss of the session.
//
// A member gets a [*MismatchError] if its number of members differs from the barrier's. One member
// too many gets [ErrTooMany].
//
// # Not guaranteed
//
// The servers notice a death when the session timeout is over. Until then a dead member counts as
// present. A stopped process (SIGSTOP, a paused virtual machine) may believe that it is inside
// after the others have left: use [Round.Context], or write to ZooKeeper under [Round.Guard].
//
// # Nodes
//
//	<path>                 a gate: it exists while the gate is up; ephemeral if a lease holds it, else persistent
//
//	<path>                 a double barrier, persistent: its number as JSON; its version counts the phases
//	<path>/in-<uuid>       persistent, named by <path>
//	<path>/in-<uuid>/m-#   ephemeral sequential: one member, waiting or inside
//	<path>/round           persistent: the numbers of the members of the last round that has begun, as JSON
//
//	<path>                 a latch, persistent: its number as JSON
//	<path>/by/<id>         persistent: this caller has counted
//	<path>/at/c-#          persistent sequential: one count; the last one's name opens the latch
//
// Directories above them are containers. A gate is Apache Curator's DistributedBarrier;
// [WithCuratorLayout] gives a double barrier the layout of its DistributedDoubleBarrier.
//
// # Failure
//
// See the types. Calls wait until transient errors, such as a lost connection, have passed.
package barrier
