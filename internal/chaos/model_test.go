//go:build linux

package chaos

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// during is an act that takes place at some moment between two.
func during(from, to int64, a act) porcupine.Operation {
	return porcupine.Operation{Input: a, Call: from, Return: to}
}

func locked(id string, token int64) act {
	return act{what: grant, id: id, kind: exclusive, token: token, number: token}
}
func reading(id string, token int64) act { return act{what: grant, id: id, kind: shared, token: token} }
func taken(id string, n int) act         { return act{what: grant, id: id, kind: permits, permits: n} }
func over(id string) act                 { return act{what: end, id: id, how: released} }
func overAs(id string, h how) act        { return act{what: end, id: id, how: h} }
func placed(n int64) act                 { return act{what: put, number: n} }
func delivered(id string, n int64, attempt int) act {
	return act{what: grant, id: id, kind: taking, number: n, attempt: attempt}
}

// scenario is a history made by hand, and what a model must say of it.
type scenario struct {
	name  string
	legal bool
	ops   []porcupine.Operation
}

func (s scenario) run(t *testing.T, m porcupine.Model) {
	t.Helper()
	t.Run(s.name, func(t *testing.T) { require.Equal(t, s.legal, porcupine.CheckOperations(m, s.ops)) })
}

const never = int64(1) << 40

func TestMutexModel(t *testing.T) {
	for _, s := range []scenario{
		{"one after the other", true, []porcupine.Operation{
			during(1, 3, locked("a", 5)), during(4, 6, over("a")), during(2, 7, locked("b", 6)), during(8, 9, over("b"))}},
		{"two holders", false, []porcupine.Operation{
			during(1, 3, locked("a", 5)), during(9, 10, over("a")), during(2, 7, locked("b", 6)), during(11, 12, over("b"))}},
		{"two holders, and the first notices late", false, []porcupine.Operation{
			during(1, 3, locked("a", 5)), during(8, 20, over("a")), during(2, 7, locked("b", 6))}},
		{"a stopped holder, which was last seen standing before", true, []porcupine.Operation{
			during(1, 3, locked("a", 5)), during(6, 20, over("a")), during(2, 7, locked("b", 6))}},
		{"a dead holder", true, []porcupine.Operation{
			during(1, 3, locked("a", 5)), during(4, never, over("a")), during(2, 7, locked("b", 6)), during(8, 9, over("b"))}},
		{"a holder that died after the next was granted", false, []porcupine.Operation{
			during(1, 3, locked("a", 5)), during(8, never, over("a")), during(2, 7, locked("b", 6))}},
		{"a token that falls", false, []porcupine.Operation{
			during(1, 3, locked("a", 5)), during(4, 6, over("a")), during(7, 8, locked("b", 4))}},
		{"a token given twice", false, []porcupine.Operation{
			during(1, 3, locked("a", 5)), during(4, 6, over("a")), during(7, 8, locked("b", 5))}},
		{"an end without a grant", false, []porcupine.Operation{during(1, 2, over("a"))}},
	} {
		s.run(t, holdModel(rule{fenced: true}, holders{}))
	}
	scenario{"a token below those of the segment before", false,
		[]porcupine.Operation{during(1, 3, locked("a", 5))}}.run(t, holdModel(rule{fenced: true}, holders{highest: 7, fence: 7}))
	scenario{"a number below those of the segment before", false,
		[]porcupine.Operation{during(1, 3, locked("a", 5))}}.run(t, holdModel(rule{numbered: true}, holders{number: 5}))
}

func TestReadWriteModel(t *testing.T) {
	for _, s := range []scenario{
		{"readers together, then a writer", true, []porcupine.Operation{
			during(1, 2, reading("a", 5)), during(1, 3, reading("b", 6)), during(4, 5, over("a")), during(6, 7, over("b")), during(3, 8, locked("c", 7))}},
		{"readers' tokens in any order", true, []porcupine.Operation{
			during(1, 2, reading("a", 6)), during(3, 4, reading("b", 5))}},
		{"a writer beside a reader", false, []porcupine.Operation{
			during(1, 2, reading("a", 5)), during(3, 4, locked("b", 6)), during(5, 6, over("a"))}},
		{"a reader beside a writer", false, []porcupine.Operation{
			during(1, 2, locked("a", 5)), during(3, 4, reading("b", 6)), during(5, 6, over("a"))}},
		{"a reader's token below a writer's", false, []porcupine.Operation{
			during(1, 2, locked("a", 5)), during(3, 4, over("a")), during(5, 6, reading("b", 4))}},
	} {
		s.run(t, holdModel(rule{fenced: true}, holders{}))
	}
}

func TestSemaphoreModel(t *testing.T) {
	for _, s := range []scenario{
		{"all permits", true, []porcupine.Operation{
			during(1, 2, taken("a", 1)), during(3, 4, taken("b", 2)), during(5, 6, over("a")), during(5, 7, taken("c", 1))}},
		{"one too many", false, []porcupine.Operation{
			during(1, 2, taken("a", 1)), during(3, 4, taken("b", 2)), during(6, 7, over("a")), during(4, 5, taken("c", 1))}},
	} {
		s.run(t, holdModel(rule{limit: 3}, holders{}))
	}
}

func TestItemModel(t *testing.T) {
	sees := act{what: empty}
	for _, s := range []scenario{
		{"delivered and acknowledged", true, []porcupine.Operation{
			during(1, 4, placed(1)), during(2, 3, delivered("a", 1, 1)), during(5, 6, overAs("a", acked)), during(7, 8, sees)}},
		{"lost with its consumer and delivered again", true, []porcupine.Operation{
			during(1, 2, placed(1)), during(2, 3, delivered("a", 1, 1)), during(5, 9, overAs("a", died)), during(6, 7, delivered("b", 1, 2)),
			during(8, 9, overAs("b", acked)), during(10, 11, sees)}},
		{"two holders", false, []porcupine.Operation{
			during(1, 2, placed(1)), during(2, 3, delivered("a", 1, 1)), during(7, 9, overAs("a", lost)), during(4, 5, delivered("b", 1, 2)),
			during(8, 9, overAs("b", acked))}},
		{"delivered after it was acknowledged", false, []porcupine.Operation{
			during(1, 2, placed(1)), during(2, 3, delivered("a", 1, 1)), during(4, 5, overAs("a", acked)), during(6, 7, delivered("b", 1, 2))}},
		{"acknowledged in doubt: again", true, []porcupine.Operation{
			during(1, 2, placed(1)), during(2, 3, delivered("a", 1, 1)), during(4, 5, overAs("a", inDoubt)), during(6, 7, delivered("b", 1, 2))}},
		{"acknowledged in doubt: gone", true, []porcupine.Operation{
			during(1, 2, placed(1)), during(2, 3, delivered("a", 1, 1)), during(4, 5, overAs("a", inDoubt)), during(6, 7, sees)}},
		{"the same attempt again", false, []porcupine.Operation{
			during(1, 2, placed(1)), during(2, 3, delivered("a", 1, 1)), during(4, 5, overAs("a", lost)), during(6, 7, delivered("b", 1, 1))}},
		{"lost", false, []porcupine.Operation{during(1, 2, placed(1)), during(3, 4, sees)}},
		{"lost after a delivery", false, []porcupine.Operation{
			during(1, 2, placed(1)), during(2, 3, delivered("a", 1, 1)), during(4, 5, overAs("a", returned)), during(6, 7, sees)}},
		{"a put that was never done", true, []porcupine.Operation{during(1, never, placed(1)), during(3, 4, sees)}},
		{"put by nobody", false, []porcupine.Operation{during(2, 3, delivered("a", 1, 1))}},
	} {
		s.run(t, itemModel)
	}
}

func TestStreamModel(t *testing.T) {
	sees := act{what: empty}
	both := []porcupine.Operation{during(1, 2, placed(1)), during(3, 4, placed(2))}
	for _, s := range []scenario{
		{"in order", true, append(both[:2:2], during(5, 6, delivered("a", 1, 1)), during(7, 8, overAs("a", acked)),
			during(9, 10, delivered("b", 2, 1)), during(11, 12, overAs("b", acked)), during(13, 14, sees))},
		{"out of order", false, append(both[:2:2], during(5, 6, delivered("b", 2, 1)), during(7, 8, overAs("b", acked)),
			during(9, 10, delivered("a", 1, 1)), during(11, 12, overAs("a", acked)))},
		{"the second begins before the first is acknowledged", false, append(both[:2:2], during(5, 6, delivered("a", 1, 1)),
			during(7, 8, delivered("b", 2, 1)), during(9, 10, overAs("a", acked)))},
		{"the first is given back, and the second comes first", false, append(both[:2:2], during(5, 6, delivered("a", 1, 1)),
			during(7, 8, overAs("a", returned)), during(9, 10, delivered("b", 2, 1)))},
		{"the first is given back and comes again", true, append(both[:2:2], during(5, 6, delivered("a", 1, 1)),
			during(7, 8, overAs("a", returned)), during(9, 10, delivered("b", 1, 2)))},
		{"in doubt, then the second", true, append(both[:2:2], during(5, 6, delivered("a", 1, 1)),
			during(7, 8, overAs("a", inDoubt)), during(9, 10, delivered("b", 2, 1)), during(11, 12, overAs("b", acked)), during(13, 14, sees))},
		{"in doubt, then the first", true, append(both[:2:2], during(5, 6, delivered("a", 1, 1)),
			during(7, 8, overAs("a", inDoubt)), during(9, 10, delivered("b", 1, 2)))},
		{"the last in doubt", true, []porcupine.Operation{during(1, 2, placed(1)), during(5, 6, delivered("a", 1, 1)),
			during(7, 8, overAs("a", inDoubt)), during(9, 10, sees)}},
		{"one is lost", false, append(both[:2:2], during(5, 6, delivered("a", 1, 1)), during(7, 8, overAs("a", acked)), during(9, 10, sees))},
	} {
		s.run(t, streamModel(1))
	}
}
