// Package queuelayout is all that is known of a queue's nodes: their names, the bytes in them, and
// the order in which they are listed. Package queue documents what each node is for, and
// docs/layouts.md the bytes.
//
//   - layout.go has the names: [Layout], [Chain], [Segment] and [Item], the tickets, and how a queue
//     and its parts are recognized.
//   - chains.go lists chains, segments, items and tickets, and opens, closes and removes segments.
//   - record.go, envelope.go, progress.go and counters.go encode and decode the data of nodes.
//
// It decides nothing: which items to claim, or when to return them, is the part of package queue.
package queuelayout
