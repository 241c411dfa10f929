package queue

import (
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// chainHead is the first item of a chain, and the items behind it in its segment. The tickets of a
// segment are numbered in the order in which they were drawn. So the first item that has a ticket
// is the one that a consumer has had for the longest time.
type chainHead struct {
	segment queuelayout.Segment
	items   []string // the nodes, from that of the first item on

	first   InFlightItem // without Data and consumer
	created time.Time

	ticket string // of the first item that has one, or ""
	item   string // that item
}

func newChainHead(l *queuelayout.Layout, items []string, first framework.Node) *chainHead {
	h := &chainHead{segment: l.ItemOf(items[0]).Segment, items: items, first: newClaim(items[0], first),
		created: first.Stat.Ctime}
	h.first.Data = nil
	return h
}

// findClaimed finds the first item that has one of the tickets with these names.
func (h *chainHead) findClaimed(tickets []string) {
	byNumber := h.segment.TicketsIn(tickets)
	for _, item := range h.items {
		_, name := znode.Split(item)
		if k, ok := queuelayout.ItemNumber(name); ok && byNumber[k] != "" {
			h.ticket, h.item = byNumber[k], item
			return
		}
	}
}

// unread are the nodes to read to describe the claim that findClaimed has found: the ticket, and
// the item unless it is the first.
func (h *chainHead) unread() []string {
	switch {
	case h.ticket == "":
		return nil
	case h.item == h.items[0]:
		return []string{h.ticket}
	}
	return []string{h.ticket, h.item}
}

// describeClaim describes the claim by the nodes of unread. It returns false if the item was
// settled meanwhile.
func (h *chainHead) describeClaim(read []framework.Node) (c InFlightItem, held bool, err error) {
	if len(read) == 0 {
		return c, false, nil
	}
	for _, n := range read {
		if n.Err != nil {
			if errors.Is(n.Err, framework.ErrNoNode) {
				return c, false, nil
			}
			return c, false, n.Err
		}
	}
	c = h.first
	created := h.created
	if len(read) > 1 {
		c, created = newClaim(h.item, read[1]), read[1].Stat.Ctime
		c.Data = nil
	}
	c.addTicket(h.ticket, read[0], created)
	return c, true, nil
}

// addTicket adds what the claim's ticket says of the consumer. created is when the item's node was
// created: the ticket may have waited for it.
func (c *InFlightItem) addTicket(path string, ticket framework.Node, created time.Time) {
	c.ticket, c.Session, c.Owner, c.Since = path, ticket.Stat.EphemeralOwner, string(ticket.Data), ticket.Stat.Ctime
	if created.After(c.Since) {
		c.Since = created
	}
}
