// Package ids makes numbers that are unique in a cluster: a [Sequence] gives numbers from reserved
// blocks, and a [Worker] gives ids that consist of a time, a slot and a count. A [Counter] is a
// number that many processes change. [MakeName] makes unique names.
//
// # Guarantee
//
// No id is given twice when replies are lost, sessions end, processes die or stand still, or clocks
// are wrong. Uniqueness rests on compare-and-set writes of persistent nodes: a call gives ids only
// after the servers have answered the write that reserves them. It does not rest on a lease or on a
// lock, so a session without heartbeats suffices. A change of a counter that returns without an
// error has taken effect exactly once.
//
// # Not guaranteed
//
// That ids have no gaps. That ids stay unique when a node is deleted or set back by hand, or the
// ensemble is restored from a backup: ids that were given before may be given again.
//
// # Nodes
//
//	<path>                            a sequence, persistent: the first number that no block contains, as JSON
//	<path>                            the path of workers, persistent: the number of slots and the epoch, as JSON
//	<path>/<slot>                     persistent: the time from which on no id of the slot was reserved, as JSON
//	<path>/<slot>/_c_<uuid>-owner     ephemeral: the worker that uses the slot
//	<path>                            a counter, persistent: 8 bytes as Apache Curator's DistributedAtomicLong, 4 as its SharedCount, or text as kazoo's Counter
//	<path>~writers/<name>             persistent: a write marker, which shows whether a transaction without an answer was applied
//	<dir>                             the directory of names, persistent
//	<dir>/_c_<uuid>-<prefix><number>  persistent: a name
//
// Directories above them, and <path>~writers, are containers.
//
// # Failure
//
// Calls wait until transient errors, such as a lost connection, have passed. If an argument of a
// constructor is invalid, every call that needs the servers returns an error that says so.
package ids
