//go:build linux

package chaos

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// between returns an operation that takes effect at some moment between two times.
func between(from, to int64, a modelInput) porcupine.Operation {
	return porcupine.Operation{Input: a, Call: from, Return: to}
}

func grantLock(id string, token int64) modelInput {
	return modelInput{op: opGrant, id: id, kind: kindLock, token: token, number: token}
}
func grantRead(id string, token int64) modelInput {
	return modelInput{op: opGrant, id: id, kind: kindReadLock, token: token}
}
func grantPermits(id string, n int) modelInput {
	return modelInput{op: opGrant, id: id, kind: kindPermits, permits: n}
}
func releaseHold(id string) modelInput          { return modelInput{op: opEnd, id: id, reason: endReleased} }
func endWith(id string, h endReason) modelInput { return modelInput{op: opEnd, id: id, reason: h} }
func putItem(n int64) modelInput                { return modelInput{op: opPut, number: n} }
func deliver(id string, n int64, attempt int) modelInput {
	return modelInput{op: opGrant, id: id, kind: kindDelivery, number: n, attempt: attempt}
}

// modelCase is a history written by hand, and the expected verdict of a model.
type modelCase struct {
	name  string
	legal bool
	ops   []porcupine.Operation
}

func (s modelCase) run(t *testing.T, m porcupine.Model) {
	t.Helper()
	t.Run(s.name, func(t *testing.T) { require.Equal(t, s.legal, porcupine.CheckOperations(m, s.ops)) })
}

const farFuture = int64(1) << 40

func TestMutexModel(t *testing.T) {
	for _, s := range []modelCase{
		{"one after the other", true, []porcupine.Operation{
			between(1, 3, grantLock("a", 5)), between(4, 6, releaseHold("a")), between(2, 7, grantLock("b", 6)),
			between(8, 9, releaseHold("b"))}},
		{"two holders", false, []porcupine.Operation{
			between(1, 3, grantLock("a", 5)), between(9, 10, releaseHold("a")), between(2, 7, grantLock("b", 6)),
			between(11, 12, releaseHold("b"))}},
		{"two holders, and the first notices late", false, []porcupine.Operation{
			between(1, 3, grantLock("a", 5)), between(8, 20, releaseHold("a")), between(2, 7, grantLock("b", 6))}},
		{"a stopped holder, which was last seen standing before", true, []porcupine.Operation{
			between(1, 3, grantLock("a", 5)), between(6, 20, releaseHold("a")), between(2, 7, grantLock("b", 6))}},
		{"a dead holder", true, []porcupine.Operation{
			between(1, 3, grantLock("a", 5)), between(4, farFuture, releaseHold("a")), between(2, 7, grantLock("b", 6)),
			between(8, 9, releaseHold("b"))}},
		{"a holder that died after the next was granted", false, []porcupine.Operation{
			between(1, 3, grantLock("a", 5)), between(8, farFuture, releaseHold("a")),
			between(2, 7, grantLock("b", 6))}},
		{"a token that falls", false, []porcupine.Operation{
			between(1, 3, grantLock("a", 5)), between(4, 6, releaseHold("a")), between(7, 8, grantLock("b", 4))}},
		{"a token given twice", false, []porcupine.Operation{
			between(1, 3, grantLock("a", 5)), between(4, 6, releaseHold("a")), between(7, 8, grantLock("b", 5))}},
		{"an end without a grant", false, []porcupine.Operation{between(1, 2, releaseHold("a"))}},
	} {
		s.run(t, holdModel(holdRule{fenced: true}, holdState{}))
	}
	modelCase{"a token below those of the segment before", false,
		[]porcupine.Operation{between(1, 3, grantLock("a", 5))}}.run(t,
		holdModel(holdRule{fenced: true}, holdState{highestToken: 7, highestExclusive: 7}))
	modelCase{"a number below those of the segment before", false,
		[]porcupine.Operation{between(1, 3, grantLock("a", 5))}}.run(t,
		holdModel(holdRule{numbered: true}, holdState{highestNumber: 5}))
}

func TestReadWriteModel(t *testing.T) {
	for _, s := range []modelCase{
		{"readers together, then a writer", true, []porcupine.Operation{
			between(1, 2, grantRead("a", 5)), between(1, 3, grantRead("b", 6)), between(4, 5, releaseHold("a")),
			between(6, 7, releaseHold("b")), between(3, 8, grantLock("c", 7))}},
		{"readers' tokens in any order", true, []porcupine.Operation{
			between(1, 2, grantRead("a", 6)), between(3, 4, grantRead("b", 5))}},
		{"a writer while a reader holds", false, []porcupine.Operation{
			between(1, 2, grantRead("a", 5)), between(3, 4, grantLock("b", 6)), between(5, 6, releaseHold("a"))}},
		{"a reader while a writer holds", false, []porcupine.Operation{
			between(1, 2, grantLock("a", 5)), between(3, 4, grantRead("b", 6)), between(5, 6, releaseHold("a"))}},
		{"a reader's token below a writer's", false, []porcupine.Operation{
			between(1, 2, grantLock("a", 5)), between(3, 4, releaseHold("a")), between(5, 6, grantRead("b", 4))}},
	} {
		s.run(t, holdModel(holdRule{fenced: true}, holdState{}))
	}
}

func TestSemaphoreModel(t *testing.T) {
	for _, s := range []modelCase{
		{"all permits", true, []porcupine.Operation{
			between(1, 2, grantPermits("a", 1)), between(3, 4, grantPermits("b", 2)), between(5, 6, releaseHold("a")),
			between(5, 7, grantPermits("c", 1))}},
		{"one too many", false, []porcupine.Operation{
			between(1, 2, grantPermits("a", 1)), between(3, 4, grantPermits("b", 2)), between(6, 7, releaseHold("a")),
			between(4, 5, grantPermits("c", 1))}},
	} {
		s.run(t, holdModel(holdRule{permits: 3}, holdState{}))
	}
}

func TestItemModel(t *testing.T) {
	sees, cancelItem := modelInput{op: opSeenEmpty}, modelInput{op: opCancel}
	for _, s := range []modelCase{
		{"delivered and acknowledged", true, []porcupine.Operation{
			between(1, 4, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(5, 6, endWith("a", endAcked)),
			between(7, 8, sees)}},
		{"lost with its consumer and delivered again", true, []porcupine.Operation{
			between(1, 2, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(5, 9, endWith("a", endProcessDied)),
			between(6, 7, deliver("b", 1, 2)),
			between(8, 9, endWith("b", endAcked)), between(10, 11, sees)}},
		{"two holders", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(7, 9, endWith("a", endLost)),
			between(4, 5, deliver("b", 1, 2)),
			between(8, 9, endWith("b", endAcked))}},
		{"delivered after it was acknowledged", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(4, 5, endWith("a", endAcked)),
			between(6, 7, deliver("b", 1, 2))}},
		{"acknowledged in doubt: again", true, []porcupine.Operation{
			between(1, 2, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(4, 5, endWith("a", endUncertain)),
			between(6, 7, deliver("b", 1, 2))}},
		{"acknowledged in doubt: gone", true, []porcupine.Operation{
			between(1, 2, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(4, 5, endWith("a", endUncertain)),
			between(6, 7, sees)}},
		{"the same attempt again", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(4, 5, endWith("a", endLost)),
			between(6, 7, deliver("b", 1, 1))}},
		{"lost", false, []porcupine.Operation{between(1, 2, putItem(1)), between(3, 4, sees)}},
		{"lost after a delivery", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(4, 5, endWith("a", endNacked)),
			between(6, 7, sees)}},
		{"a put that was not carried out", true,
			[]porcupine.Operation{between(1, farFuture, putItem(1)), between(3, 4, sees)}},
		{"cancelled", true, []porcupine.Operation{between(1, 2, putItem(1)), between(3, 4, cancelItem),
			between(5, 6, sees)}},
		{"cancelled after it was given back", true, []porcupine.Operation{
			between(1, 2, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(4, 5, endWith("a", endNacked)),
			between(4, 6, cancelItem), between(7, 8, sees)}},
		{"delivered after it was cancelled", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(3, 4, cancelItem), between(5, 6, deliver("a", 1, 1)),
			between(7, 8, endWith("a", endAcked))}},
		{"cancelled while it is held", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(4, 5, cancelItem),
			between(6, 7, endWith("a", endAcked))}},
		{"cancelled after it was acknowledged", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(4, 5, endWith("a", endAcked)),
			between(6, 7, cancelItem)}},
		{"cancelled twice", true, []porcupine.Operation{between(1, 2, putItem(1)), between(3, 4, cancelItem),
			between(5, 6, cancelItem), between(7, 8, sees)}},
		{"cancelled again after it has left the queue", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(3, 4, cancelItem), between(5, 6, sees), between(7, 8, cancelItem)}},
		{"delivered after it was cancelled twice", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(3, 4, cancelItem), between(5, 6, cancelItem),
			between(7, 8, deliver("a", 1, 1)), between(9, 10, endWith("a", endAcked))}},
		{"delivered between two cancels", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(3, 4, cancelItem), between(5, 6, deliver("a", 1, 1)),
			between(7, 8, endWith("a", endNacked)), between(9, 10, cancelItem)}},
		{"cancelled, and cancelled again while it is held", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(3, 8, cancelItem), between(4, 5, deliver("a", 1, 1)),
			between(6, 7, cancelItem), between(9, 10, endWith("a", endAcked))}},
		{"cancelled without a put", false, []porcupine.Operation{between(3, 4, cancelItem)}},
		{"cancelled below a holder whose item was purged", true, []porcupine.Operation{
			between(1, 2, putItem(1)), between(2, 3, deliver("a", 1, 1)), between(4, 5, modelInput{op: opPurge}),
			between(6, 7, cancelItem), between(8, 9, endWith("a", endUncertain)),
			between(10, 11, sees)}},
		{"a dead letter", true, []porcupine.Operation{between(1, 2, putItem(1)),
			between(3, 4, modelInput{op: opSeenEmpty, deadLetter: true})}},
		{"a dead letter that was cancelled", false, []porcupine.Operation{
			between(1, 2, putItem(1)), between(3, 4, cancelItem),
			between(5, 6, modelInput{op: opSeenEmpty, deadLetter: true})}},
		{"delivered without a put", false, []porcupine.Operation{between(2, 3, deliver("a", 1, 1))}},
	} {
		s.run(t, itemModel)
	}
}

func TestStreamModel(t *testing.T) {
	sees := modelInput{op: opSeenEmpty}
	both := []porcupine.Operation{between(1, 2, putItem(1)), between(3, 4, putItem(2))}
	for _, s := range []modelCase{
		{"in order", true, append(both[:2:2], between(5, 6, deliver("a", 1, 1)), between(7, 8, endWith("a", endAcked)),
			between(9, 10, deliver("b", 2, 1)), between(11, 12, endWith("b", endAcked)), between(13, 14, sees))},
		{"out of order", false, append(both[:2:2], between(5, 6, deliver("b", 2, 1)),
			between(7, 8, endWith("b", endAcked)),
			between(9, 10, deliver("a", 1, 1)), between(11, 12, endWith("a", endAcked)))},
		{"the second begins before the first is acknowledged", false,
			append(both[:2:2], between(5, 6, deliver("a", 1, 1)),
				between(7, 8, deliver("b", 2, 1)), between(9, 10, endWith("a", endAcked)))},
		{"the first is given back, and the second comes first", false,
			append(both[:2:2], between(5, 6, deliver("a", 1, 1)),
				between(7, 8, endWith("a", endNacked)), between(9, 10, deliver("b", 2, 1)))},
		{"the first is given back and comes again", true, append(both[:2:2], between(5, 6, deliver("a", 1, 1)),
			between(7, 8, endWith("a", endNacked)), between(9, 10, deliver("b", 1, 2)))},
		{"in doubt, then the second", true, append(both[:2:2], between(5, 6, deliver("a", 1, 1)),
			between(7, 8, endWith("a", endUncertain)), between(9, 10, deliver("b", 2, 1)),
			between(11, 12, endWith("b", endAcked)), between(13, 14, sees))},
		{"in doubt, then the first", true, append(both[:2:2], between(5, 6, deliver("a", 1, 1)),
			between(7, 8, endWith("a", endUncertain)), between(9, 10, deliver("b", 1, 2)))},
		{"the last in doubt", true, []porcupine.Operation{between(1, 2, putItem(1)), between(5, 6, deliver("a", 1, 1)),
			between(7, 8, endWith("a", endUncertain)), between(9, 10, sees)}},
		{"one is lost", false, append(both[:2:2], between(5, 6, deliver("a", 1, 1)),
			between(7, 8, endWith("a", endAcked)), between(9, 10, sees))},
	} {
		s.run(t, streamModel(1))
	}
}
