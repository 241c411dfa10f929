package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// returns is a step that counts its calls.
func returns[T any](calls *int, result T) func(context.Context, workflow.Key) (T, error) {
	return func(context.Context, workflow.Key) (T, error) {
		*calls++
		return result, nil
	}
}

func TestNextExecutorGetsRecordedResults(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		type rows struct {
			Copied int
			At     time.Time
		}
		var calls int
		var keys []workflow.Key
		first := w.execute(w.member("a"))
		want := rows{7, time.Now()}
		got, err := workflow.Step(t.Context(), first.opened, "copy",
			func(_ context.Context, k workflow.Key) (rows, error) {
				keys = append(keys, k)
				return want, nil
			})
		require.NoError(t, err)
		require.True(t, want.At.Equal(got.At))
		boom := errors.New("boom")
		switchOver := func(_ context.Context, k workflow.Key) error {
			keys = append(keys, k)
			if len(keys) < 3 {
				return boom
			}
			return nil
		}
		err = first.opened.Do(t.Context(), "switch", switchOver)
		require.ErrorIs(t, err, boom)
		require.ErrorContains(t, err, path+"/step-switch")
		require.True(t, first.opened.IsRecorded("copy"))
		require.False(t, first.opened.IsRecorded("switch"))
		first.release(t)

		second := w.execute(w.member("b"))
		require.Equal(t, first.opened.UUID(), second.opened.UUID())
		again, err := workflow.Step(t.Context(), second.opened, "copy", returns(&calls, rows{}))
		require.NoError(t, err)
		require.Equal(t, got, again, "the first call returned what the record says")
		require.Zero(t, calls)
		require.NoError(t, second.opened.Do(t.Context(), "switch", switchOver))
		require.Len(t, keys, 3)
		require.NotEqual(t, keys[0].ID, keys[1].ID)
		require.Equal(t, keys[1].ID, keys[2].ID, "each attempt has the same key")
		require.Greater(t, keys[2].Token, keys[1].Token)
		require.Equal(t, second.lease.Token(), keys[2].Token)

		records, err := first.ledger.Records(t.Context())
		require.NoError(t, err)
		require.Len(t, records, 2)
		require.Equal(t, []string{"copy", "switch"}, []string{records[0].Name, records[1].Name})
		require.Equal(t, first.lease.Token(), records[0].Token)
		require.JSONEq(t, `null`, string(records[1].Result))
		require.NoError(t, second.ledger.Remove(t.Context(), second.lease))
		second.open(t)
		require.NoError(t, second.opened.Do(t.Context(), "switch", func(_ context.Context, k workflow.Key) error {
			require.NotEqual(t, keys[2].ID, k.ID, "a removed ledger's keys are not used again")
			return nil
		}))
		require.WithinDuration(t, time.Now(), records[1].Recorded, time.Minute)
	})
}

// TestServersRefuseRecordOfEndedExecutor: its process has not noticed its end.
func TestServersRefuseRecordOfEndedExecutor(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		zombie := &executor{context.Background(), framework.CheckOp(e.lease.Node(), framework.AnyVersion),
			e.lease.Token()}
		opened, err := e.ledger.Open(t.Context(), zombie)
		require.NoError(t, err)
		var calls int
		_, err = workflow.Step(t.Context(), opened, "copy", func(context.Context, workflow.Key) (int, error) {
			e.release(t)
			calls++
			return 1, nil
		})
		require.ErrorIs(t, err, workflow.ErrEnded)
		require.Empty(t, w.steps())
		_, err = workflow.Step(t.Context(), opened, "copy", returns(&calls, 2))
		require.ErrorIs(t, err, workflow.ErrEnded)
		_, err = e.ledger.Open(t.Context(), zombie)
		require.NoError(t, err, "there is nothing to write")
		require.ErrorIs(t, e.ledger.Remove(t.Context(), zombie), workflow.ErrEnded)
		_, err = workflow.NewLedger(e.Client, "/work/other").Open(t.Context(), zombie)
		require.ErrorIs(t, err, workflow.ErrEnded)
		require.Empty(t, w.Children("/work/other"))
	})
}

// TestOpenBesideARemoval: the ledger is removed while an executor reads it. One that has not
// noticed its end is told of that, and not that a node is missing.
func TestOpenBesideARemoval(t *testing.T) {
	for name, ended := range map[string]bool{"the executor stands": false, "the executor has ended": true} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				e := w.execute(w.member("a"))
				zombie := &executor{context.Background(), framework.CheckOp(e.lease.Node(), framework.AnyVersion),
					e.lease.Token()}
				read := w.DelayReplies(time.Second,
					zktest.Match{Op: zktest.OpGetData, Session: e.lease.Session(), Path: path})
				opened := make(chan error, 1)
				go func() { _, err := e.ledger.Open(t.Context(), zombie); opened <- err }()
				<-read.Hit()
				other := w.member("b")
				require.NoError(t, other.Delete(t.Context(), path, framework.AnyVersion))
				if ended {
					require.NoError(t, other.Delete(t.Context(), e.lease.Node(), framework.AnyVersion))
					require.ErrorIs(t, <-opened, workflow.ErrEnded)
				} else {
					require.NoError(t, <-opened)
				}
			})
		})
	}
}

// executor is one that does not know its end.
type executor struct {
	ctx   context.Context
	guard framework.Op
	token int64
}

func (e *executor) Context() context.Context { return e.ctx }
func (e *executor) Guard() framework.Op      { return e.guard }
func (e *executor) Token() int64             { return e.token }

func TestExecutorThatLosesItsSessionRecordsNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		first := w.execute(w.member("a"))
		var calls int
		_, err := workflow.Step(t.Context(), first.opened, "copy",
			func(ctx context.Context, _ workflow.Key) (int, error) {
				first.Link.Cut()
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), workflow.ErrEnded)
				return 1, nil
			}, workflow.WithStepAttempts(5, time.Second))
		require.ErrorIs(t, err, workflow.ErrEnded)
		require.ErrorIs(t, err, framework.ErrSessionLost)
		second := w.execute(w.member("b"))
		first.Link.Heal()
		got, err := workflow.Step(t.Context(), second.opened, "copy", returns(&calls, 2))
		require.NoError(t, err)
		require.Equal(t, 2, got)
		_, err = workflow.Step(t.Context(), first.opened, "other", returns(&calls, 3))
		require.ErrorIs(t, err, workflow.ErrEnded)
		require.Equal(t, 1, calls)
		require.Equal(t, []string{"step-copy"}, w.steps())
	})
}

// TestLostReplies loses the answer of each request in turn, with the connection.
func TestLostReplies(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpGetData, zktest.OpGetChildren, zktest.OpCreate} {
		for nth := 1; nth <= 4; nth++ {
			in(t, func(t *testing.T, w *world) {
				m := w.member("a")
				lease, err := locks.NewMutex(m.Client, lockPath).Lock(t.Context())
				require.NoError(t, err)
				w.DropReply(nth, zktest.Match{Op: op})
				e := &execution{m, workflow.NewLedger(m.Client, path), lease, nil}
				e.open(t)
				var calls int
				for i := range 3 {
					got, err := workflow.Step(t.Context(), e.opened, fmt.Sprint(i), returns(&calls, i))
					require.NoError(t, err)
					require.Equal(t, i, got)
				}
				require.Equal(t, 3, calls)
				id := e.opened.UUID()
				e.open(t)
				require.Equal(t, id, e.opened.UUID())
				require.NoError(t, e.ledger.Forget(t.Context(), e.lease, "1", "2", "9"))
				require.Equal(t, []string{"step-0"}, w.steps())
				require.NoError(t, e.ledger.Remove(t.Context(), e.lease))
				_, there := w.Node(path)
				require.False(t, there)
				require.NoError(t, e.ledger.Remove(t.Context(), e.lease))
				require.NoError(t, e.ledger.Forget(t.Context(), e.lease, "1"))
				e.open(t)
				require.NotEqual(t, id, e.opened.UUID())
			})
		}
	}
}

// TestStepAfterUncertainRecordReturnsIt: the caller's context ends before the answer.
func TestStepAfterUncertainRecordReturnsIt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		var calls int
		for _, name := range []string{"written", "unwritten"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := workflow.Step(ctx, e.opened, name, func(context.Context, workflow.Key) (int, error) {
				calls++
				e.Link.BlackHole(name == "unwritten", name == "written")
				return calls, nil
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
			e.Link.Heal()
		}
		e.Link.Reset()
		got, err := workflow.Step(t.Context(), e.opened, "written", returns(&calls, 9))
		require.NoError(t, err)
		require.Equal(t, 1, got)
		require.Equal(t, 2, calls, "a step that has its record is not run again")
		_, err = workflow.Step(t.Context(), e.opened, "written", returns(&calls, 9))
		require.ErrorIs(t, err, framework.ErrInvalid)
		got, err = workflow.Step(t.Context(), e.opened, "unwritten", returns(&calls, 3))
		require.NoError(t, err)
		require.LessOrEqual(t, got, 3)
	})
}

// TestExecutorsWithDifferentLocksFindOut when one records what the other has recorded.
func TestExecutorsWithDifferentLocksFindOut(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		other := w.member("b")
		lease, err := locks.NewMutex(other.Client, "/locks/other").Lock(t.Context())
		require.NoError(t, err)
		opened, err := workflow.NewLedger(other.Client, path).Open(t.Context(), lease)
		require.NoError(t, err)
		var calls int
		_, err = workflow.Step(t.Context(), opened, "copy", returns(&calls, 1))
		require.NoError(t, err)
		for range 2 {
			_, err = workflow.Step(t.Context(), e.opened, "copy", returns(&calls, 2))
			require.ErrorIs(t, err, framework.ErrConflict)
		}
		require.Equal(t, 2, calls)
	})
}

// TestRecordsBehindLaggingServer: the server of the next executor has not applied what the former
// one has recorded.
func TestRecordsBehindLaggingServer(t *testing.T) {
	for _, call := range []string{"open", "records", "forget", "remove"} {
		in(t, func(t *testing.T, w *world) {
			a, b := w.member("a"), w.member("b")
			e := w.execute(a)
			s, err := b.Session(t.Context())
			require.NoError(t, err)
			ledger, other := workflow.NewLedger(b.Client, path),
				&executor{t.Context(), framework.CheckOp("/", framework.AnyVersion), 1}
			catchUp, err := w.LagAsLeader(s.ID())
			require.NoError(t, err)
			var calls int
			_, err = workflow.Step(t.Context(), e.opened, "copy", returns(&calls, 1))
			require.NoError(t, err)
			time.AfterFunc(time.Second, catchUp)
			switch call {
			case "open":
				opened, err := ledger.Open(t.Context(), other)
				require.NoError(t, err)
				require.True(t, opened.IsRecorded("copy"))
			case "records":
				records, err := ledger.Records(t.Context())
				require.NoError(t, err)
				require.Len(t, records, 1)
			case "forget":
				require.NoError(t, ledger.Forget(t.Context(), other, "copy"))
				require.Empty(t, w.steps())
			case "remove":
				require.NoError(t, ledger.Remove(t.Context(), other))
				require.Empty(t, w.steps())
			}
		})
	}
}

func TestStepsOfOneRunAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				got, err := workflow.Step(t.Context(), e.opened, fmt.Sprint(i),
					func(context.Context, workflow.Key) (int, error) {
						time.Sleep(time.Second)
						return i, nil
					})
				require.NoError(t, err)
				require.Equal(t, i, got)
			})
		}
		all.Wait()
		require.Len(t, w.steps(), 50)
		under := make(chan struct{})
		all.Go(func() {
			require.NoError(t, e.opened.Do(t.Context(), "twice", func(context.Context, workflow.Key) error {
				close(under)
				time.Sleep(time.Second)
				return nil
			}))
		})
		<-under
		require.ErrorIs(t, e.opened.Do(t.Context(), "twice", nothing), framework.ErrInvalid)
		all.Wait()
		require.ErrorIs(t, e.opened.Do(t.Context(), "twice", nothing), framework.ErrInvalid)
	})
}

func nothing(context.Context, workflow.Key) error { return nil }

func TestRetriesOfAStep(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		fails := func(times int, err error) func(context.Context, workflow.Key) (int, error) {
			return func(_ context.Context, k workflow.Key) (int, error) {
				if k.Attempt <= times {
					return 0, err
				}
				return k.Attempt, nil
			}
		}
		boom := errors.New("boom")
		began := time.Now()
		got, err := workflow.Step(t.Context(), e.opened, "a", fails(3, boom), workflow.WithStepAttempts(4, time.Second))
		require.NoError(t, err)
		require.Equal(t, 4, got)
		require.GreaterOrEqual(t, time.Since(began), 3500*time.Millisecond, "half of 1, 2 and 4 seconds")
		_, err = workflow.Step(t.Context(), e.opened, "b", fails(3, boom), workflow.WithStepAttempts(3, time.Second))
		require.ErrorIs(t, err, boom)
		_, err = workflow.Step(t.Context(), e.opened, "c", fails(1, workflow.Permanent(boom)),
			workflow.WithStepAttempts(3, time.Second))
		require.ErrorIs(t, err, workflow.ErrStepFailed)
		require.NoError(t, workflow.Permanent(nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = workflow.Step(ctx, e.opened, "d", fails(9, boom), workflow.WithStepAttempts(9, time.Minute))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, boom)
		got, err = workflow.Step(t.Context(), e.opened, "d", fails(0, nil))
		require.NoError(t, err)
		require.Equal(t, 1, got, "a step that has failed may be called again")
		records, err := e.ledger.Records(t.Context())
		require.NoError(t, err)
		require.Equal(t, 4, records[0].Attempts)
	})
}

func TestTimeoutAndPanicOfAStep(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		err := e.opened.Do(t.Context(), "slow", func(ctx context.Context, _ workflow.Key) error {
			<-ctx.Done()
			return ctx.Err()
		}, workflow.WithTimeout(time.Minute))
		require.ErrorIs(t, err, framework.ErrTimeout)
		require.ErrorContains(t, err, "1m0s")
		require.NoError(t, e.opened.Do(t.Context(), "slow", nothing, workflow.WithTimeout(time.Minute)))
		err = e.opened.Do(t.Context(), "wild", func(context.Context, workflow.Key) error { panic("no\x1b[2J") })
		require.ErrorIs(t, err, framework.ErrPanic)
		require.Equal(t, []string{"step-slow"}, w.steps())
	})
}

func TestResultsThatCannotBeRecorded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		var calls int
		twice := workflow.WithStepAttempts(2, time.Second)
		_, err := workflow.Step(t.Context(), e.opened, "nan", returns(&calls, math.NaN()), twice)
		require.ErrorIs(t, err, framework.ErrBadValue)
		_, err = workflow.Step(t.Context(), e.opened, "large", returns(&calls, strings.Repeat("x", workflow.MaxResult)),
			twice)
		require.ErrorIs(t, err, framework.ErrTooLarge)
		require.ErrorContains(t, err, "store it elsewhere")
		_, err = workflow.Step(t.Context(), e.opened, "one-way", returns(&calls, oneWay{}), twice)
		require.ErrorIs(t, err, framework.ErrBadValue)
		require.Equal(t, 3, calls, "another attempt would not help")
		require.Empty(t, w.steps())
		for i := range 4 {
			_, err = workflow.Step(t.Context(), e.opened, fmt.Sprint(i),
				returns(&calls, strings.Repeat("x", workflow.MaxResult-2)))
			require.NoError(t, err)
		}
		_, err = workflow.Step(t.Context(), e.opened, "4", returns(&calls, 1))
		require.ErrorIs(t, err, framework.ErrTooLarge)
		e.open(t)
		_, err = workflow.Step(t.Context(), e.opened, "4", returns(&calls, 1))
		require.ErrorIs(t, err, framework.ErrTooLarge)
		_, err = workflow.Step(t.Context(), e.opened, "3", returns(&calls, 1))
		require.ErrorIs(t, err, framework.ErrBadValue, "the type has changed")
		require.ErrorContains(t, err, "step-3")
		require.NoError(t, e.ledger.Forget(t.Context(), e.lease, "3"))
		e.open(t)
		_, err = workflow.Step(t.Context(), e.opened, "3", returns(&calls, 1))
		require.NoError(t, err)
	})
}

// oneWay can be encoded but not decoded.
type oneWay struct{}

func (oneWay) MarshalJSON() ([]byte, error) { return []byte(`"x"`), nil }

func TestTooManySteps(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		for i := range workflow.MaxSteps {
			require.NoError(t, e.opened.Do(t.Context(), fmt.Sprint(i), nothing))
		}
		require.ErrorIs(t, e.opened.Do(t.Context(), "more", nothing), framework.ErrTooLarge)
		e.open(t)
		require.ErrorIs(t, e.opened.Do(t.Context(), "more", nothing), framework.ErrTooLarge)
		require.NoError(t, e.opened.Do(t.Context(), "999", nothing))
		records, err := e.ledger.Records(t.Context())
		require.NoError(t, err)
		require.Len(t, records, workflow.MaxSteps)
		require.NoError(t, e.ledger.Remove(t.Context(), e.lease))
		records, err = e.ledger.Records(t.Context())
		require.NoError(t, err)
		require.Empty(t, records)
	})
}

func TestRemovedLedger(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		require.NoError(t, e.ledger.Remove(t.Context(), e.lease))
		require.ErrorIs(t, e.opened.Do(t.Context(), "a", nothing), workflow.ErrRemoved)
		_, there := w.Node(path)
		require.False(t, there)
	})
}

func TestForeignAndNewerNodes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		for data, want := range map[string]error{
			"":                                 framework.ErrBadRecord,
			"\x1b[2J":                          framework.ErrBadRecord,
			`{"v":1,"kind":"queue","id":"x"}`:  framework.ErrForeign,
			`{"v":1,"kind":"ledger"}`:          framework.ErrForeign,
			`{"v":9,"kind":"ledger","id":"x"}`: framework.ErrNewer,
		} {
			require.NoError(t, e.DeleteIfPresent(t.Context(), "/work/other"))
			require.NoError(t, e.Create(t.Context(), "/work/other", []byte(data), framework.Persistent))
			_, err := workflow.NewLedger(e.Client, "/work/other").Open(t.Context(), e.lease)
			require.ErrorIs(t, err, want)
			require.ErrorContains(t, err, "/work/other")
		}
		require.NoError(t, e.Create(t.Context(), path+"/step-x", []byte(`{"v":1}`), framework.Persistent))
		_, err := e.ledger.Open(t.Context(), e.lease)
		require.ErrorIs(t, err, framework.ErrBadRecord)
		_, err = e.ledger.Records(t.Context())
		require.ErrorIs(t, err, framework.ErrBadRecord)
		require.NoError(t, e.Create(t.Context(), path+"/what", nil, framework.Persistent))
		require.ErrorIs(t, e.ledger.Remove(t.Context(), e.lease), framework.ErrForeign)
		require.Len(t, w.steps(), 2, "nothing was deleted")
	})
}

func TestBadArguments(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		for _, name := range []string{"", "a/b", "a\x00", "a\nb", "\u202e", "\xff",
			strings.Repeat("x", workflow.MaxName+1), "\ufffd", ".", ".."} {
			err := e.opened.Do(t.Context(), name, nothing)
			require.ErrorIs(t, err, framework.ErrInvalid, "%q", name)
			require.NotContains(t, err.Error(), "\u202e")
		}
		for _, name := range []string{"zookeeper", "copy of Ärger", strings.Repeat("x", workflow.MaxName)} {
			require.NoError(t, e.opened.Do(t.Context(), name, nothing))
		}
		for _, option := range []workflow.StepOption{
			workflow.WithTimeout(0), workflow.WithStepAttempts(0, time.Second), workflow.WithStepAttempts(2, 0),
			workflow.WithStepAttempts(2, time.Hour),
		} {
			require.ErrorIs(t, e.opened.Do(t.Context(), "bad", nothing, option), framework.ErrInvalid)
		}
		require.NoError(t, e.opened.Do(t.Context(), "none", nothing, nil))
		for _, none := range []workflow.Recorder{nil, (*workflow.OpenLedger)(nil), (*workflow.Run)(nil),
			workflow.OpenLedger{}, &workflow.Run{}} {
			_, err := workflow.Step(t.Context(), none, "a",
				func(context.Context, workflow.Key) (int, error) { return 0, nil })
			require.ErrorIs(t, err, framework.ErrInvalid)
		}
		_, err := workflow.Step[int](t.Context(), e.opened, "a", nil)
		require.ErrorIs(t, err, framework.ErrInvalid)
		var lease *locks.Lease
		for _, none := range []workflow.Executor{nil, lease} {
			_, err = e.ledger.Open(t.Context(), none)
			require.ErrorIs(t, err, framework.ErrInvalid)
		}
		for _, bad := range []*workflow.Ledger{workflow.NewLedger(nil, path), workflow.NewLedger(e.Client, "x"),
			workflow.NewLedger(e.Client, "/")} {
			_, err = bad.Open(t.Context(), e.lease)
			require.Error(t, err)
			_, err = bad.Records(t.Context())
			require.Error(t, err)
			require.Error(t, bad.Remove(t.Context(), e.lease))
			require.Error(t, bad.Forget(t.Context(), e.lease, "a"))
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, e.opened.Do(ended, "late", nothing), context.Canceled)
		_, err = e.ledger.Open(ended, e.lease)
		require.ErrorIs(t, err, context.Canceled)
		e.release(t)
		err = e.opened.Do(t.Context(), "late", nothing)
		require.ErrorIs(t, err, workflow.ErrEnded)
		require.ErrorIs(t, err, locks.ErrReleased)
		require.False(t, e.opened.IsRecorded("late"))
	})
}
