// Package queue is a FIFO queue on ZooKeeper with deliveries that have to be acknowledged.
//
// # Guarantee
//
// At least once: an item leaves the queue only by the transaction that removes it together with the claim on it, so
// whatever dies, no item is lost. Nobody else has an item while its delivery's context stands, as long as the holder's
// process is scheduled. A put whose reply was lost is found out about, and is there once. When a consumer's session
// ends, its items come back, first in line, with a higher attempt.
//
// Order is [Parallel] or [Strict], and stored with the queue. Parallel is FIFO of claims: the k-th claim gets the k-th
// item, while handlers may start a few items apart. Strict is FIFO of starts: one consumer at a time, the next goes on
// where the last acknowledged.
//
// Put and take cost the same however deep the queue is, k new items wake k consumers, and nothing is polled.
//
// # Not guaranteed
//
// Exactly once: a consumer that has done its work and dies before the acknowledgement has its item delivered again. A
// process that was stopped may act after its delivery has ended, before it looks at the context. An item that comes
// back does so behind those that others had claimed meanwhile.
//
// # Nodes
//
//	<path>                                persistent: the record, JSON {"v":2,"recipe":"queue","order",…}
//	<path>/items/<seg>/i-#                persistent: an item; see docs/layouts.md for its bytes
//	<path>/lanes/<lane>/<seg>/i-#         persistent: items that go first: returned ones (redo), and those with a priority
//	<path>/tickets/<line>/<seg>/t-<id>-#  ephemeral: the claim of the item with its number, of items or a lane (parallel)
//	<path>/lock                           a locks.Mutex: the consumers; the first is the only one (strict), or the recoverer (parallel)
//	<path>/writers/<uuid>                 container: settles lost replies
//
// Why they are so is in docs/adr/0021, 0022 and 0038.
//
// # Failure
//
// While the connection is suspended deliveries stand until the session's proof of life ends, and calls wait. When the
// session is lost, open deliveries end, waiting calls of Take go on with the next session, and acknowledging what has
// ended returns [ErrLost].
package queue
