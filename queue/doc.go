// Package queue is a FIFO queue on ZooKeeper with deliveries that have to be acknowledged.
//
// # Guarantee
//
// At least once: an item leaves the queue only in the transaction that also removes the claim on
// it, so no crash loses an item. No other consumer has an item until its delivery's context ends,
// as long as the consumer's process is scheduled. If the reply to a put is lost, the client checks
// the outcome; the item is stored once. When a consumer's session ends, its items come back, first
// in line, with a higher attempt.
//
// The order is [Parallel] or [Strict], and is stored with the queue. In a parallel queue claims are
// FIFO: the k-th claim gets the k-th item, while handlers may start a few items apart. In a strict
// queue starts are FIFO: one consumer at a time, and the next one continues after the last
// acknowledged item.
//
// The cost of Put and Take does not depend on the length of the queue. k new items wake k
// consumers. Consumers do not poll.
//
// # Not guaranteed
//
// Exactly once: if a consumer has done its work and dies before the acknowledgement, its item is
// delivered again. A paused process may act after its delivery has ended, until it looks at the
// context. An item that comes back is claimed after the items that other consumers have claimed
// meanwhile.
//
// # Nodes
//
//	<path>                                persistent: the record, JSON {"v":2,"recipe":"queue","order",…}
//	<path>/items/<seg>/i-#                persistent: an item; see docs/layouts.md for its bytes
//	<path>/lanes/<lane>/<seg>/i-#         persistent: items that go first: returned ones (redo), and those with a priority
//	<path>/tickets/<chain>/<seg>/t-<id>-# ephemeral: the claim of the item with its number, of items or a lane; data: who has it (parallel)
//	<path>/lock                           a locks.Mutex: the consumers; the first is the only one (strict), or the recoverer (parallel)
//	<path>/cancels/<id>-<put>-<call>      persistent: marks of items that were cancelled (Cancel)
//	<path>/writers/<uuid>                 container: tells the outcome after lost replies
//	<path>/dead/<seg>/i-#                 persistent: a dead letter
//	<path>/later/<hour>/<second>/i-#      persistent: a delayed item, by the second of Unix time at which it is due
//	<path>/claimed                        persistent: how far the chains of a strict queue were claimed
//	<path>/ids/<bucket>/<shard>/<hash>    persistent: an id that is remembered (WithDedup)
//	<path>/in, out, places/<uuid>, room   the counts of a bounded queue (WithCapacity), and the lock of the producers that wait for room
//	<path>/paused, dropped                persistent: the queue is paused, or is being dropped
//
// docs/layouts.md has their data; docs/adr/0021, 0022 and 0038 give the reasons.
//
// # Failure
//
// While the connection is suspended, deliveries remain valid until the session's lease ends, and
// calls wait. When the session is lost, open deliveries end, and waiting calls of Take continue
// with the next session. An acknowledgement of an ended delivery returns [ErrLost].
//
// # Where to read
//
// A put:
//
//	queue.go           PutBatch encodes the values into a writeRequest (transaction.go)
//	writer.go          collects requests into transactions and sends them
//	transaction.go     says what follows when one is refused, and finds the outcome after lost replies
//	appender.go        adds the creates of items at the end of the last segment
//
// A take:
//
//	queue.go           Take waits for a claimed item and decodes it
//	takes.go           matches calls of Take with claimed items, within the limits of WithMaxInFlight and WithPrefetch
//	parallel.go        claims items by tickets; segmentviews.go plans where to draw them
//	strict.go          claims items under the queue's lock; strictreader.go reads them ahead
//	consumersession.go delivers them, for one session; consumer.go begins and ends these
//
// An acknowledgement:
//
//	delivery.go        turns Ack, Nack and Return into a writeRequest that also removes the claim
//	writer.go          sends it, with requests that claim the next items
//
// Around these: store.go finds and makes the queue; recoverer.go returns the items of dead
// consumers; internal/queuelayout names, lists and decodes all nodes. inspectmany.go reads many
// queues at once, with heads.go and retried.go; inflight.go and takeback.go are for operators.
package queue
