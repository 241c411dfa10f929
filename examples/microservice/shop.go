package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

const (
	electionPath = "/shop/leader"
	numberPath   = "/shop/number"
)

// errNotLeading is returned by a replica that does not lead.
var errNotLeading = errors.New("this replica does not lead")

// shop hands out order numbers while this replica leads. The last number is stored in ZooKeeper, in
// transactions that the term guards: the servers refuse late writes of a former leader.
type shop struct {
	client *framework.Client

	mu   sync.Mutex
	term *election.Term // nil while this replica does not lead
	last number
}

// number is the last number, as stored.
type number struct {
	value   int64
	version int32
}

func newShop(client *framework.Client) *shop { return &shop{client: client} }

// lead is the leader's work: it takes orders until its context ends.
func (s *shop) lead(ctx context.Context, term *election.Term) error {
	last, err := s.load(ctx)
	if err != nil {
		return err
	}
	s.setTerm(term, last)
	defer s.setTerm(nil, number{})
	<-ctx.Done()
	return nil
}

func (s *shop) setTerm(term *election.Term, last number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.last = term, last
}

// load reads the number of the last order, and creates it if there is none.
func (s *shop) load(ctx context.Context) (number, error) {
	if err := s.client.CreateIfMissing(ctx, numberPath, []byte("0"), framework.Persistent); err != nil {
		return number{}, err
	}
	data, st, err := s.client.Get(ctx, numberPath)
	if err != nil {
		return number{}, err
	}
	value, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil { // an operator must repair this
		return number{}, election.Permanent(fmt.Errorf("%s: %w", numberPath, err))
	}
	return number{value, st.Version}, nil
}

// order returns the next number. If the connection is lost, a number may remain unused.
func (s *shop) order(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil || s.term.Err() != nil {
		return 0, errNotLeading
	}
	next := s.last.value + 1
	results, err := s.client.Multi(ctx, s.term.Guard(),
		framework.SetOp(numberPath, strconv.AppendInt(nil, next, 10), s.last.version))
	if err == nil {
		s.last = number{next, results[1].Stat.Version}
		return next, nil
	}
	if last, err := s.load(ctx); err == nil { // it may have been written
		s.last = last
	}
	return 0, err
}
