package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// records are the history's notes, newest first; "!" marks what another program wrote.
func records(t *testing.T, v *config.Value[limits]) (notes []string) {
	t.Helper()
	list, err := v.History(t.Context())
	require.NoError(t, err)
	for _, r := range list {
		require.NoError(t, r.Err)
		note := r.Note + "=" + string(r.Data)
		if r.Foreign {
			note = "!" + note
		}
		notes = append(notes, note)
	}
	return notes
}

func TestSetWritesPlainBytesAndARecordInOneTransaction(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		require.NoError(t, v.Set(t.Context(), limits{Rate: 1}, config.WithNote("first"), config.WithExpectedVersion(0)))
		node, _ := w.Node(path)
		require.Equal(t, `{"rate":1}`, string(node.Data))
		list, err := v.History(t.Context())
		require.NoError(t, err)
		require.Equal(t, []config.Record{{
			Version: node.Stat.Mzxid, Written: list[0].Written, By: "a", Note: "first", Data: []byte(`{"rate":1}`),
		}}, list)
		now, err := w.limits(w.b).Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, list[0].Version, now.Version)
		require.Equal(t, list[0].Written, now.Since)
	})
}

func TestIfWritesOnlyOverTheVersionThatWasRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		var conflict *config.ConflictError
		require.ErrorAs(t, v.Set(t.Context(), limits{Rate: 1}, config.WithExpectedVersion(77)), &conflict)
		require.Equal(t, config.ConflictError{Path: path, Version: 0, Wanted: 77}, *conflict)
		require.NoError(t, v.Set(t.Context(), limits{Rate: 1}, config.WithExpectedVersion(0)))
		first := w.version()
		require.ErrorIs(t, v.Set(t.Context(), limits{Rate: 2}, config.WithExpectedVersion(0)), framework.ErrConflict)
		require.NoError(t, v.Set(t.Context(), limits{Rate: 2}, config.WithExpectedVersion(first)))
		err := v.Set(t.Context(), limits{Rate: 3}, config.WithExpectedVersion(first))
		require.ErrorIs(t, err, framework.ErrConflict)

		// A node that was deleted and created again has the same version of ZooKeeper's, and not
		// the same here.
		second := w.version()
		require.NoError(t, w.b.Delete(t.Context(), path, framework.AnyVersion))
		w.write(`{"rate":9}`)
		err = v.Set(t.Context(), limits{Rate: 3}, config.WithExpectedVersion(second))
		require.ErrorIs(t, err, framework.ErrConflict)
		require.Equal(t, []string{`!={"rate":9}`, `={"rate":2}`, `={"rate":1}`}, records(t, v))
	})
}

func TestConcurrentConditionalSetsLoseNoIncrement(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.limits(w.a).Set(t.Context(), limits{}))
		done := make(chan error)
		for i := range 4 {
			m := w.member(fmt.Sprint(i))
			go func() {
				v := w.limits(m)
				for n := 0; n < 10; {
					s, err := v.Load(t.Context())
					if err == nil {
						err = v.Set(t.Context(), limits{Rate: s.Value.Rate + 1}, config.WithExpectedVersion(s.Version))
					}
					switch {
					case err == nil:
						n++
					case !errors.Is(err, framework.ErrConflict):
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 4 {
			require.NoError(t, <-done)
		}
		s, err := w.limits(w.a).Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, 40, s.Value.Rate)
	})
}

// TestAConditionalSetIsRefusedIfAnotherIsAppliedAfterItsRead lets another client write while the
// request of a conditional Set is under way.
func TestAConditionalSetIsRefusedIfAnotherIsAppliedAfterItsRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		require.NoError(t, v.Set(t.Context(), limits{Rate: 1}))
		s, err := w.a.Session(t.Context())
		require.NoError(t, err)
		hasRead := make(chan struct{}, 10)
		defer w.Observe(func(r zktest.Request) {
			if r.Session == s.ID() && r.Op == zktest.OpGetChildren2 { // the last request before the transaction
				hasRead <- struct{}{}
			}
		})()
		w.a.Link.Delay(500 * time.Millisecond)
		done := make(chan error, 1)
		go func() { done <- v.Set(t.Context(), limits{Rate: 2}, config.WithExpectedVersion(w.version())) }()
		<-hasRead
		require.NoError(t, w.limits(w.b).Set(t.Context(), limits{Rate: 7}))
		require.ErrorIs(t, <-done, framework.ErrConflict)
		loaded, err := w.limits(w.b).Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, 7, loaded.Value.Rate)
	})
}

func TestALostReplyOfSetIsSettled(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world, session int64){
		"nothing else happens": func(*world, int64) {},
		"the session is lost": func(w *world, session int64) {
			require.NoError(w.t, w.Expire(framework.SessionID(session)))
		},
		"another one writes": func(w *world, _ int64) {
			require.NoError(w.t, w.limits(w.b).Set(w.t.Context(), limits{Rate: 7}, config.WithNote("other")))
		},
		"another program deletes the node": func(w *world, _ int64) {
			require.NoError(w.t, w.b.Delete(w.t.Context(), path, framework.AnyVersion))
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				v := w.limits(w.a)
				require.NoError(t, v.Set(t.Context(), limits{Rate: 1}, config.WithNote("before")))
				s, err := w.a.Session(t.Context())
				require.NoError(t, err)
				lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Session: s.ID(),
					Func: func(q zktest.Request) bool {
						return len(q.Parts) > 1 && q.Parts[0].Path == path
					}})
				done := make(chan error, 1)
				go func() {
					done <- v.Set(t.Context(), limits{Rate: 2}, config.WithNote("mine"),
						config.WithExpectedVersion(w.version()))
				}()
				<-lost.Hit()
				w.a.Link.Cut()
				meanwhile(w, int64(s.ID()))
				time.Sleep(time.Second)
				w.a.Link.Heal()
				require.NoError(t, <-done, "it was written")
				mine := 0
				for _, note := range records(t, v) {
					if strings.HasPrefix(note, "mine") {
						mine++
					}
				}
				require.Equal(t, 1, mine)
			})
		})
	}
}

func TestASetThatWasNotAppliedIsRepeated(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		require.NoError(t, v.Set(t.Context(), limits{Rate: 1}, config.WithNote("before")))
		w.a.Link.BlackHole(true, false) // the request leaves and does not arrive
		done := make(chan error, 1)
		go func() { done <- v.Set(t.Context(), limits{Rate: 2}, config.WithNote("mine")) }()
		synctest.Wait()
		w.a.Link.Reset()
		w.a.Link.Heal()
		require.NoError(t, <-done)
		require.Equal(t, []string{`mine={"rate":2}`, `before={"rate":1}`}, records(t, v))
	})
}

func TestASetWhoseContextEndsTellsThatItsOutcomeIsUnknown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		require.NoError(t, v.Set(t.Context(), limits{Rate: 1}))
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti,
			Func: func(q zktest.Request) bool { return len(q.Parts) > 1 && q.Parts[0].Path == path }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- v.Set(ctx, limits{Rate: 2}) }()
		<-lost.Hit()
		w.a.Link.Cut()
		err := <-done
		require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.a.Link.Heal()
	})
}

// TestASetThatManyOthersFollowIsNotGuessed: the records of the time of its try are gone.
func TestASetThatManyOthersFollowIsNotGuessed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v, other := w.limits(w.a), w.limits(w.b)
		require.NoError(t, v.Set(t.Context(), limits{Rate: 1}))
		s, err := w.a.Session(t.Context())
		require.NoError(t, err)
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Session: s.ID(),
			Func: func(q zktest.Request) bool { return len(q.Parts) > 1 && q.Parts[0].Path == path }})
		done := make(chan error, 1)
		go func() { done <- v.Set(t.Context(), limits{Rate: 2}) }()
		<-lost.Hit()
		w.a.Link.Cut()
		for i := range 25 {
			require.NoError(t, other.Set(t.Context(), limits{Rate: 100 + i}))
		}
		w.a.Link.Heal()
		require.ErrorIs(t, <-done, framework.ErrOutcomeUnknown)
		last, err := other.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, 124, last.Value.Rate, "the newer ones stay")
	})
}

func TestSetRefusesWhatReadersWouldRefuse(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		err := v.Set(t.Context(), limits{Rate: -1})
		require.ErrorIs(t, err, framework.ErrBadValue)
		require.ErrorIs(t, err, errNegative)
		require.ErrorIs(t, v.Set(t.Context(), limits{Owner: strings.Repeat("x", 2<<20)}), framework.ErrTooLarge)
		_, exists := w.Node(path)
		require.False(t, exists)
		f := config.New(w.a.Client, path, codec.JSON[func()]())
		require.ErrorIs(t, f.Set(t.Context(), nil), framework.ErrBadValue)
	})
}

func TestTheHistoryKeepsTwentyRecordsAndTellsOfOtherPrograms(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		w.write(`{"rate":0}`)
		require.NoError(t, v.Set(t.Context(), limits{Rate: 1}, config.WithNote("one")))
		require.Equal(t, []string{`one={"rate":1}`, `!={"rate":0}`}, records(t, v))
		w.write("\xff\x00 not text")
		require.Equal(t, []string{"!=\xff\x00 not text", `one={"rate":1}`, `!={"rate":0}`}, records(t, v))
		require.NoError(t, v.Set(t.Context(), limits{Rate: 2}, config.WithNote("two")))
		require.Equal(t, []string{`two={"rate":2}`, "!=\xff\x00 not text", `one={"rate":1}`, `!={"rate":0}`},
			records(t, v))
		for i := range 30 {
			require.NoError(t, v.Set(t.Context(), limits{Rate: 100 + i}))
		}
		require.Len(t, records(t, v), 20)
		require.Len(t, w.Children(path+"~past"), 20)
		require.Equal(t, `={"rate":129}`, records(t, v)[0])
	})
}

// TestLargeTexts: texts with much markup take little more room in their records than in the node.
func TestLargeTexts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := config.New(w.a.Client, path, codec.Text())
		for _, text := range []string{strings.Repeat("x", 490_000), strings.Repeat("<a>&", 120_000),
			strings.Repeat("\"\n", 220_000), strings.Repeat("\x01\u00e4", 140_000)} {
			require.NoError(t, v.Set(t.Context(), text), "%.8q", text)
			history, err := v.History(t.Context())
			require.NoError(t, err)
			require.True(t, text == string(history[0].Data))
		}
	})
}

// TestSetOverALargeForeignValue: its record does not fit into the transaction, and is kept without
// the value.
func TestSetOverALargeForeignValue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		for i, size := range []int{400_000, 1_000_000} {
			w.write(strings.Repeat([]string{"<", "\x01"}[i], size))
			foreign := w.version()
			require.NoError(t, v.Set(t.Context(), limits{Rate: 2}))
			history, err := v.History(t.Context())
			require.NoError(t, err)
			require.Equal(t, foreign, history[1].Version)
			require.True(t, history[1].Foreign)
			if i == 0 {
				require.Len(t, history[1].Data, size)
				continue
			}
			require.ErrorIs(t, history[1].Err, framework.ErrTooLarge)
			require.ErrorContains(t, history[1].Err, "1000000 bytes")
			require.ErrorIs(t, v.Rollback(t.Context(), foreign), framework.ErrTooLarge)
		}
	})
}

func TestRollbackWritesAnEarlierVersionAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		for i := range 3 {
			require.NoError(t, v.Set(t.Context(), limits{Rate: i}))
		}
		w.write(`{"rate":-9}`)
		list, err := v.History(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, v.Rollback(t.Context(), list[0].Version), framework.ErrBadValue)
		require.ErrorIs(t, v.Rollback(t.Context(), 1), config.ErrNoValue)
		require.ErrorIs(t, v.Rollback(t.Context(), list[2].Version, config.WithExpectedVersion(list[2].Version)),
			framework.ErrConflict)
		require.NoError(t, v.Rollback(t.Context(), list[2].Version, config.WithExpectedVersion(list[0].Version)))
		require.Equal(t, fmt.Sprintf(`rollback to %d={"rate":1}`, list[2].Version), records(t, v)[0])
	})
}

// TestTextAndTimeOfARecordCanBeEncoded: other clients may have written any time.
func TestTextAndTimeOfARecordCanBeEncoded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		require.NoError(t, v.Set(t.Context(), limits{}, config.WithNote("a\xff")))
		require.Equal(t, []string{"a\uFFFD={\"rate\":0}"}, records(t, v))
		record := []byte(`{"v":1,"foreign":1,"written":"9999-12-31T23:59:59-14:00"}`)
		require.NoError(t, w.b.Create(t.Context(), path+"~past/v-9000000000", record, framework.Persistent))
		list, err := v.History(t.Context())
		require.NoError(t, err)
		_, err = json.Marshal(list)
		require.NoError(t, err)
	})
}

func TestARecordThatCannotBeReadIsTold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		require.NoError(t, v.Set(t.Context(), limits{Rate: 1}))
		for name, data := range map[string]string{"v-9000000000": "{", "v-9000000001": `{"v":9}`, "other": ""} {
			require.NoError(t, w.b.Create(t.Context(), path+"~past/"+name, []byte(data), framework.Persistent))
		}
		list, err := v.History(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 3)
		require.ErrorIs(t, list[0].Err, framework.ErrNewer)
		require.ErrorIs(t, list[1].Err, framework.ErrBadRecord)
		require.NoError(t, list[2].Err)
		require.ErrorIs(t, v.Rollback(t.Context(), list[1].Version), framework.ErrBadRecord)
		require.NoError(t, v.Set(t.Context(), limits{Rate: 2}))
	})
}
