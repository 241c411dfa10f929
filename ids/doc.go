// Package ids gives numbers to a whole cluster: a [Sequence] of unique numbers in reserved blocks, a [Worker] whose ids are made of a time and a slot, and a [Counter] that many
// processes change. [NewName] makes unique names.
//
// # Guarantee
//
// No id is given twice when replies are lost, sessions end, processes die or stand still, or clocks are wrong. Uniqueness rests on compare-and-set writes
// of persistent nodes, each of which was answered before what it reserves is given. It does not rest on a lease or on a lock, so a session without heartbeats
// suffices. A change of a counter that returns without an error counts exactly once.
//
// # Not guaranteed
//
// Ids have gaps. When a node is deleted or set back by hand, or the ensemble is restored from a backup, ids that were given before may be given again.
//
// # Nodes
//
//	<path>                 a sequence, persistent: the first number that no block contains, as JSON
//	<path>                 a worker's path, persistent: the number of slots and the epoch, as JSON
//	<path>/<slot>          persistent: the time from which on no id of the slot was reserved, as JSON; below it the owner, ephemeral
//	<path>                 a counter, persistent: 8 bytes as Apache Curator's DistributedAtomicLong, 4 as its SharedCount, or text as kazoo's Counter
//	<path>~writers/<name>  persistent: a writer's note, by which it finds out what became of a transaction without an answer
//
// Directories above them are containers.
//
// # Failure
//
// Calls wait until transient errors, such as a lost connection, have passed. If an argument of a constructor is invalid, every call returns an error that says so.
package ids
