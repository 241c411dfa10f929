// Package waitgraph finds deadlocks: holders of locks that wait for each other, in any processes.
//
// A lock request whose caller holds other locks is a [Request]. Once it has waited for a second, it
// stores a record beside the lock that it waits for: what it waits for, and what its caller holds.
// From these records each session reads a wait-for graph, and searches it for cycles. Once all
// requests of a cycle have confirmed that they still wait, the victim fails: the youngest of them.
//
//	<lock>~waits/_c_<uuid>-ask-#    ephemeral; data is JSON, see record
package waitgraph
