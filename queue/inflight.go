package queue

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/locks"
)

// InFlightItem is an item that a consumer has claimed; see Queue.InFlight.
type InFlightItem struct {
	// Node is the item's node.
	Node string `json:"node"`
	// ID is the id that the producer gave the item, or "".
	ID string `json:"id,omitempty"`
	// Kind is the kind of the item (WithKind), or "".
	Kind string `json:"kind,omitempty"`
	// Session is the consumer's session, or 0 if a strict queue has no consumer at present.
	Session framework.SessionID `json:"session,omitempty"`
	// Owner is the identity of the consumer's client (framework.Config.Identity); in a parallel
	// queue its first 128 bytes, and "" for a consumer of an older release.
	Owner string `json:"owner,omitempty"`
	// Host and PID are of the consumer's process, as its node in the line of the consumers
	// describes it; "" and 0 if that cannot be read, or is not among the first 1,000 nodes.
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
	// Since is when the consumer claimed the item, by the ensemble's clock. In a strict queue it is
	// when the consumer has got the queue's lock.
	Since time.Time `json:"since,omitzero"`
	// Enqueued is when the item was put, by the ensemble's clock, or zero if the item could not be
	// read.
	Enqueued time.Time `json:"enqueued,omitzero"`
	// Attempt counts from 1 how often the item was claimed, as Delivery.Attempt does. It is 0 if
	// the item cannot be read.
	Attempt int `json:"attempt,omitempty"`
	// Data is the codec's bytes, or all that is stored if the item cannot be read.
	Data []byte `json:"-"`

	ticket string // the node of the claim; "" in a strict queue
}

// MarshalJSON returns the claim with Data as the text "item", and "item_base64" and "owner_base64"
// for what is not UTF-8.
func (c InFlightItem) MarshalJSON() ([]byte, error) {
	type fields InFlightItem
	c.Since, c.Enqueued = reportjson.Time(c.Since), reportjson.Time(c.Enqueued)
	return json.Marshal(reportjson.Joined{reportjson.NewItem(c.Data), struct {
		fields
		OwnerBase64 []byte `json:"owner_base64,omitempty"`
	}{fields(c), reportjson.ExactBytes(c.Owner)}})
}

// InFlight lists the items that consumers have, chain by chain, with those that they have claimed
// ahead for their next calls of Take. It changes no node. In a strict queue it also lists items
// that a consumer has returned and that wait for their next delivery: the servers do not know the
// difference.
func (q *Queue[T]) InFlight(ctx context.Context) ([]InFlightItem, error) {
	store := q.engine.store
	var claims []InFlightItem
	err := store.inExisting(ctx, func(s *framework.Session) (err error) {
		if store.record().IsStrict() {
			claims, err = store.claimsByProgress(ctx, s)
		} else {
			claims, err = store.claimsByTicket(ctx, s)
		}
		if err == nil && len(claims) > 0 {
			err = store.addProcesses(ctx, claims)
		}
		return err
	})
	return claims, failure.Wrap("list claims", q.Path(), ignoreAbsent(err))
}

// claimsByTicket lists the claims of tickets whose items exist. The other tickets still wait for
// items.
func (store *store) claimsByTicket(ctx context.Context, s *framework.Session) (claims []InFlightItem, err error) {
	chains, err := store.nodes.ListChains(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, chain := range chains {
		segments, err := chain.ListTicketSegments(ctx, s)
		if err != nil {
			return nil, err
		}
		for _, segment := range segments {
			byNumber, _, err := segment.ListTickets(ctx, s)
			if err != nil && !errors.Is(err, framework.ErrNoNode) {
				return nil, err
			}
			var tickets, items []string
			for _, number := range slices.Sorted(maps.Keys(byNumber)) {
				tickets, items = append(tickets, byNumber[number]), append(items, segment.ItemNode(number))
			}
			found, err := s.GetAll(ctx, tickets...)
			if err != nil {
				return nil, err
			}
			read, err := readItems(ctx, s, items)
			if err != nil {
				return nil, err
			}
			for i, node := range items {
				ticket, item := found[i], read[i]
				if ticket.Err != nil || item.Err != nil {
					continue
				}
				c := newClaim(node, item)
				c.addTicket(tickets[i], ticket, item.Stat.Ctime)
				claims = append(claims, c)
			}
		}
	}
	return claims, nil
}

// addProcesses adds the hosts and processes of the consumers to the claims, as far as it may read
// the line of the consumers.
func (store *store) addProcesses(ctx context.Context, claims []InFlightItem) error {
	line, err := locks.Inspect(ctx, store.client, store.nodes.LockDir)
	if errors.Is(err, framework.ErrNoAuth) {
		return nil
	}
	if err != nil {
		return err
	}
	consumers := map[framework.SessionID]locks.Entry{}
	for _, e := range slices.Concat(line.Holders, line.Waiters) {
		consumers[e.Session] = e
	}
	for i := range claims {
		if e, known := consumers[claims[i].Session]; known && e.Session != 0 {
			claims[i].Host, claims[i].PID = e.Host, e.PID
		}
	}
	return nil
}

// claimsByProgress finds the items of a strict queue up to where it was claimed.
func (store *store) claimsByProgress(ctx context.Context, s *framework.Session) (claims []InFlightItem, err error) {
	data, _, err := s.Get(ctx, store.nodes.ClaimedNode)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	progress, err := queuelayout.DecodeProgress(data)
	if err != nil {
		return nil, err
	}
	lock, err := locks.Inspect(ctx, store.client, store.nodes.LockDir)
	if err != nil {
		return nil, err
	}
	var holder locks.Entry
	if len(lock.Holders) > 0 {
		holder = lock.Holders[0]
	}
	chains, err := store.nodes.ListChains(ctx, s)
	if err != nil {
		return nil, err
	}
	for segment, err := range queuelayout.EachSegment(ctx, s, chains...) {
		if err != nil {
			return nil, err
		}
		var items []string
		for _, k := range segment.Items {
			if progress.Covers(segment.Item(k)) {
				items = append(items, segment.ItemNode(k))
			}
		}
		found, err := readItems(ctx, s, items)
		if err != nil {
			return nil, err
		}
		for i, node := range items {
			if found[i].Err == nil {
				c := newClaim(node, found[i])
				c.Session, c.Owner, c.Since = holder.Session, holder.Owner, holder.Since
				claims = append(claims, c)
			}
		}
	}
	return claims, nil
}

// readItems reads items. It reads the first one by itself: a request expects nodes like those that
// the session has read before, and tickets are small.
func readItems(ctx context.Context, s *framework.Session, items []string) ([]framework.Node, error) {
	first, err := s.GetAll(ctx, items[:min(1, len(items))]...)
	if err != nil {
		return nil, err
	}
	rest, err := s.GetAll(ctx, items[len(first):]...)
	return append(first, rest...), err
}

// newClaim is a claim of an item, without its consumer.
func newClaim(node string, item framework.Node) InFlightItem {
	e, err := queuelayout.DecodeItem(item.Data, item.Stat)
	if err != nil {
		return InFlightItem{Node: node, Data: item.Data}
	}
	c := InFlightItem{Node: node, ID: e.Header.ID, Kind: e.Header.Kind, Attempt: e.Attempt(item.Stat.Version),
		Data: e.Payload}
	if e.Header.Put > 0 {
		c.Enqueued = e.Header.EnqueuedAt()
	}
	return c
}
