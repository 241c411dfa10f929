// Package waitline is the waiting line that locks and elections share: ephemeral sequential nodes below one directory, granted in the
// order of their numbers.
//
// # Guarantee
//
// [Line.Wait] and [Line.Try] return a [Contender] once no contender is before it that it must wait for. When they fail, or when the
// contender leaves, its node is deleted, if need be in the background. Nodes ahead of a contender only vanish, so a server that lags
// shows more of them and delays a grant; it cannot grant too early. Of contenders of one session with consecutive numbers, the first
// hands the grant to the second in memory, once the deletion of its own node is in the connection's queue.
//
// # Not guaranteed
//
// A contender is a place in line, not a lease. The caller takes a primitives.Hold on its node, whose context ends with the session.
//
// # Nodes
//
//	<dir>/_c_<uuid>-<kind>#    ephemeral sequential; the kinds are lock-, latch-, __READ__ and __WRIT__
//
// # Files
//
// line.go is the algorithm: join, watch the predecessors, be granted, leave. position.go parses and orders names. list.go lists a whole line,
// view.go is what one contender sees of a list. localwaiters.go and sharedlist.go are what the contenders of one session share. uncontended.go
// proves that a contender is alone. held.go recognizes a context of the holder. telemetry.go has the span and the metric of a wait.
package waitline
