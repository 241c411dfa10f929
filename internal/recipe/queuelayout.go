package recipe

import "slices"

// The names of a queue's directories, which package queue describes.
const (
	QueueItems   = "items"
	QueueTickets = "tickets"
	QueueLanes   = "lanes" // holds items, too
	QueueDead    = "dead"
	QueueDelayed = "later"
	QueueIDs     = "ids"
)

// HasQueueLayout reports whether a node with these children is a queue.
func HasQueueLayout(children []string) bool {
	has := func(name string) bool { return slices.Contains(children, name) }
	return has(QueueItems) && (has(QueueTickets) || has(QueueDead) || has(QueueDelayed))
}

// HoldsQueueItems reports whether a queue's child with this name has a node below it for each item,
// or for each item's deduplication id. There can be millions of these nodes, and none of them is a
// lock.
func HoldsQueueItems(name string) bool {
	switch name {
	case QueueItems, QueueLanes, QueueDead, QueueDelayed, QueueIDs:
		return true
	}
	return false
}
