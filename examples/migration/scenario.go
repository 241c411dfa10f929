package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
)

// scenario reads the members' events, and kills the leader in a step.
type scenario struct {
	options
	members      *demo.Children[event]
	log          demo.Log
	killedLeader string
	keys         map[string]string // of the steps that were begun
	summary      summary
}

// summary is the result, which is printed as JSON.
type summary struct {
	Leaders  []leader       `json:"leaders"`
	Begun    map[string]int `json:"begun"`    // how often each step was begun
	Recorded []string       `json:"recorded"` // the steps with a record, in their order
	Rows     int            `json:"rows"`     // that all copies have copied
	TwoKeys  []string       `json:"two_keys"` // steps that had different keys
}

type leader struct {
	Member string   `json:"member"`
	Token  int64    `json:"token"`
	Known  []string `json:"known"` // the steps that were recorded when it began
}

// awaitFinish reads events until the migration is finished.
func (st *scenario) awaitFinish(ctx context.Context) error {
	for {
		select {
		case received := <-st.members.Events:
			if received.Ended && received.Child != st.killedLeader {
				return fmt.Errorf("%s has ended by itself", received.Child)
			}
			if !received.Ended && st.handleEvent(received) {
				return nil
			}
		case <-ctx.Done():
			return errors.New("interrupted; all members were stopped")
		}
	}
}

// handleEvent records an event, and reports whether the migration is finished.
func (st *scenario) handleEvent(received demo.ChildEvent[event]) (over bool) {
	e, s := received.Event, &st.summary
	log := func(format string, args ...any) { st.log.Line(received.At, format, args...) }
	switch e.Kind {
	case leads:
		s.Leaders = append(s.Leaders, leader{received.Child, e.Token, e.Known})
		log("%s leads with token %d; recorded: %s", received.Child, e.Token, joinOrNone(e.Known))
	case begins:
		s.Begun[e.Step]++
		if former, ok := st.keys[e.Step]; ok && former != e.Key {
			s.TwoKeys = append(s.TwoKeys, e.Step)
		}
		st.keys[e.Step] = e.Key
		log("%s begins %s", received.Child, e.Step)
	case working:
		if e.Step != st.killIn || st.killedLeader != "" {
			st.members.Continue(received.Child)
			return false
		}
		st.killedLeader = received.Child
		st.members.Kill(received.Child)
		log("%s is killed (SIGKILL) in the middle of %s", received.Child, e.Step)
	case finished:
		s.Rows = e.Rows
		log("%s has finished the migration: %d rows", received.Child, e.Rows)
		return true
	}
	return false
}

func joinOrNone(names []string) string {
	if len(names) == 0 {
		return "no step"
	}
	return strings.Join(names, ", ")
}

// readRecords reads which steps have a record.
func (s *summary) readRecords(ctx context.Context, client *framework.Client) error {
	records, err := workflow.NewLedger(client, ledgerPath).Records(ctx)
	for _, r := range records {
		s.Recorded = append(s.Recorded, r.Name)
	}
	return err
}

// verdict returns an error that lists all violations.
func (s summary) verdict(o options) error {
	var errs []error
	if !slices.Equal(s.Recorded, steps) {
		errs = append(errs, fmt.Errorf("the recorded steps are %s", joinOrNone(s.Recorded)))
	}
	for _, step := range steps {
		want := 1
		if step == o.killIn {
			want = 2
		}
		if s.Begun[step] != want {
			errs = append(errs, fmt.Errorf("%s was begun %d times, not %d", step, s.Begun[step], want))
		}
	}
	if len(s.TwoKeys) > 0 {
		errs = append(errs, fmt.Errorf("the key had changed the second time: %s", joinOrNone(s.TwoKeys)))
	}
	if s.Rows != 4*rowsOfCopy {
		errs = append(errs, fmt.Errorf("%d rows were copied, not %d", s.Rows, 4*rowsOfCopy))
	}
	if len(s.Leaders) != 2 {
		errs = append(errs, fmt.Errorf("%d members led, not 2", len(s.Leaders)))
	} else if first, next := s.Leaders[0], s.Leaders[1]; next.Token <= first.Token ||
		!slices.Equal(next.Known, steps[:slices.Index(steps, o.killIn)]) {
		errs = append(errs, fmt.Errorf("the next leader had token %d after %d and knew %s", next.Token, first.Token,
			joinOrNone(next.Known)))
	}
	return errors.Join(errs...)
}
