package workflow_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
)

type parcel struct {
	Weight int `json:"weight"`
}

var sendKind = workflow.NewKind[parcel, string]("send")

func sendParcel(context.Context, *workflow.Run, parcel) (string, error) { return "sent", nil }

// TestAKindHasTypes: what is started, awaited and executed has the types of the kind, so that a
// program with others does not compile.
func TestAKindHasTypes(t *testing.T) {
	input, result := reflect.TypeFor[parcel](), reflect.TypeFor[string]()
	require.Equal(t, input, reflect.TypeOf(sendKind.Start).In(3))
	require.Equal(t, input, reflect.TypeOf(sendKind.Child).In(3))
	require.Equal(t, result, reflect.TypeOf(sendKind.Child).Out(0))
	fn := reflect.TypeOf(sendKind.Function).In(0)
	require.Equal(t, input, fn.In(2))
	require.Equal(t, result, fn.Out(0))
	require.Equal(t, result, reflect.TypeOf(workflow.Handle[string]{}.Wait).Out(0))
	require.Equal(t, "send", sendKind.Name())
}

// TestHandle: a process that has registered nothing starts a run, before any member works on its
// kind, and waits for its result.
func TestHandle(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		starter := w.flows("starter").Workflows
		h, err := sendKind.Start(t.Context(), starter, "p1", parcel{Weight: 3})
		require.NoError(t, err)
		require.Equal(t, "p1", h.ID())
		m := w.flows("m", workflow.WithRetention(time.Minute)).work(sendKind.Function(sendParcel))
		result, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "sent", result)

		again, err := sendKind.Start(t.Context(), starter, "p1", parcel{Weight: 3})
		require.NoError(t, err)
		require.Equal(t, h, again)
		_, err = sendKind.Start(t.Context(), starter, "p1", parcel{Weight: 4})
		require.ErrorIs(t, err, workflow.ErrIDInUse)

		_, err = workflow.NewKind[parcel, string]("other").Handle(starter, "p1").Wait(t.Context())
		require.ErrorIs(t, err, workflow.ErrIDInUse)
		require.ErrorContains(t, err, `run "p1" has kind "send", not "other"`)
		_, err = workflow.NewKind[parcel, int]("send").Handle(starter, "p1").Wait(t.Context())
		require.ErrorIs(t, err, framework.ErrBadValue)
		_, err = sendKind.Handle(starter, "none").Wait(t.Context())
		require.ErrorIs(t, err, framework.ErrNotFound)

		time.Sleep(5 * time.Minute) // the run is removed
		m.start("send", "p1", parcel{Weight: 5})
		m.await("p1", workflow.Done)
		_, err = h.Wait(t.Context())
		require.ErrorIs(t, err, framework.ErrNotFound)
		require.ErrorContains(t, err, "its id is used again")
	})
}

// TestAHandleOfAKeptID: the run is removed, and Start does nothing.
func TestAHandleOfAKeptID(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("m", workflow.WithRetention(time.Minute)).work(sendKind.Function(sendParcel))
		keep := workflow.WithKeptID(time.Hour)
		_, err := sendKind.Start(t.Context(), m.Workflows, "p1", parcel{}, keep)
		require.NoError(t, err)
		m.await("p1", workflow.Done)
		time.Sleep(5 * time.Minute)
		h, err := sendKind.Start(t.Context(), m.Workflows, "p1", parcel{}, keep)
		require.NoError(t, err)
		_, err = h.Wait(t.Context())
		require.ErrorIs(t, err, framework.ErrNotFound)
	})
}

func TestBadArgumentsOfKinds(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("m")
		bad := workflow.NewKind[int, int]("a/b")
		_, err := bad.Start(t.Context(), m.Workflows, "x", 1)
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = bad.Handle(m.Workflows, "x").Wait(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = sendKind.Handle(m.Workflows, "").Wait(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = sendKind.Start(t.Context(), nil, "x", parcel{})
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = sendKind.Handle(nil, "x").Wait(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = workflow.Handle[int]{}.Wait(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalid)
		root := workflow.New(m.Member.Client, "/")
		_, err = sendKind.Start(t.Context(), root, "x", parcel{})
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = sendKind.Handle(root, "x").Wait(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalid)
	})
}
