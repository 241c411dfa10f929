// Package waitline is the waiting line that locks and elections share: ephemeral sequential nodes
// below one directory, granted in the order of their numbers.
//
// # Guarantee
//
// [Line.Wait] and [Line.Try] return a [Contender] when no other contender blocks it. When they
// fail, or when the contender leaves, its node is deleted, in the background if need be.
//
// A lagging server cannot cause an early grant. New contenders join behind a contender, and the
// nodes ahead of it can only be deleted. So a list that is too old shows too many nodes ahead,
// which delays the grant.
//
// If two contenders of one session have consecutive numbers, the first grants the second in memory:
// once the deletion of the first one's node is in the connection's queue, or, if the node has
// guarded transactions, once the node is gone.
//
// A waiter lists the line once when it joins, and once when its second predecessor has gone. It
// does not list it after a reconnect.
//
// # Not guaranteed
//
// A contender is a place in line, not a lease. The caller takes a primitives.Hold on the
// contender's node. The context of the hold ends with the session.
//
// If another client has deleted a contender's node, the contender may still be granted: when its
// predecessor's node is gone, it does not list the line again. The Hold notices the deletion. Then
// the caller calls [Contender.Unlink] before it leaves.
//
// # Nodes
//
//	<dir>/_c_<uuid>-<kind>#    ephemeral sequential; the kinds are lock-, latch-, __READ__ and __WRIT__
//
// # Files
//
// line.go is the algorithm: join, watch the predecessors, be granted, leave. position.go parses and
// orders names. list.go lists a whole line; view.go is what one contender sees in a list.
// localwaiters.go and sharedlist.go are what the contenders of one session share. uncontended.go
// proves that a contender is alone in line. held.go finds the lease or term that a context belongs
// to. telemetry.go has the spans and metrics of waits and holds.
package waitline
