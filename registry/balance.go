package registry

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// listedInstance is an instance of a list, with its load as this process has measured it.
type listedInstance struct {
	instance    Instance
	hash        uint64 // of the id
	weightsUpTo int    // the sum of the weights of the enabled instances up to and with this one
	*instanceLoad
}

// instanceLoad is the load of an instance as this process has measured it. The lists that have the
// instance share it.
type instanceLoad struct {
	calls   atomic.Int64  // under way
	latency atomic.Uint64 // bits of a float64: the moving average in nanoseconds, 0 before the first call
	// when the average last changed, at a precision of 1 ms, or when the instance was listed first;
	// by monotonicNow
	measured atomic.Int64
	failures atomic.Int32 // in a row
	ejected  atomic.Int64 // the end of the ejection, by monotonicNow; 0 if calls have succeeded since
}

func newInstanceLoad() *instanceLoad {
	m := new(instanceLoad)
	m.measured.Store(monotonicNow())
	return m
}

// processStart is the origin of monotonicNow.
var processStart = time.Now()

// monotonicNow returns the nanoseconds since processStart. It reads the monotonic clock only, in
// half the time of time.Now.
func monotonicNow() int64 { return int64(time.Since(processStart)) }

// latestCallShare is the share of the latest call in the moving average of the latency, if the call
// before has just ended. The share grows with the time since then.
const latestCallShare = 0.2

// averageHalves is the time in which the weight of earlier calls in the moving average halves.
const averageHalves = 10 * time.Second

// timeWeight is the weight that a moving average has when its latest call ended this many
// nanoseconds ago: 1 after no time, a half after averageHalves, a quarter after twice that. Between
// these times it falls in a straight line, which takes a tenth of the time of math.Exp2.
func timeWeight(age int64) float64 {
	age = max(0, age) // another goroutine may have ended a call after the caller's look at the clock
	halvings, rest := age/int64(averageHalves), age%int64(averageHalves)
	return (1 - float64(rest)/float64(2*averageHalves)) / float64(uint64(1)<<min(halvings, 63))
}

// callEnded counts the end of a call. It returns how long the call took, and whether its failure
// has ejected an instance that was not ejected.
func (m *instanceLoad) callEnded(o *poolOptions, began int64, err error) (length time.Duration, ejected bool) {
	m.calls.Add(-1)
	now := monotonicNow()
	length = time.Duration(now - began)
	m.addLatency(now, length)
	if err == nil { // an atomic write costs more than a read
		if m.failures.Load() != 0 {
			m.failures.Store(0)
		}
		if m.ejected.Load() != 0 {
			m.ejected.Store(0)
		}
	} else if m.failures.Add(1) >= o.failures {
		ejected = !m.isEjected(now)
		// failures stays: the first failure after the ejection ejects the instance again
		m.ejected.Store(now + int64(o.ejection))
	}
	return length, ejected
}

// callCanceled counts the end of a call that its caller has given up. A call that has lasted longer
// than the average, as that counts now, changes the average: otherwise an instance that hangs would
// look fast.
func (m *instanceLoad) callCanceled(began int64) {
	m.calls.Add(-1)
	now := monotonicNow()
	average := math.Float64frombits(m.latency.Load()) * timeWeight(now-m.measured.Load())
	if length := now - began; float64(length) > average {
		m.addLatency(now, time.Duration(length))
	}
}

// addLatency counts the length of a call in the average.
func (m *instanceLoad) addLatency(now int64, length time.Duration) {
	took := float64(length)
	latestShare := latestCallShare
	if age := now - m.measured.Load(); age > int64(time.Millisecond) { // an atomic write costs more than a read
		m.measured.Store(now)
		latestShare = 1 - (1-latestCallShare)*timeWeight(age)
	}
	for {
		bits := m.latency.Load()
		average := math.Float64frombits(bits)
		if average == 0 {
			average = took
		}
		if m.latency.CompareAndSwap(bits, math.Float64bits(max(1, average+latestShare*(took-average)))) {
			break
		}
	}
}

// isEjected reports whether an instance is ejected: it gets no calls because calls have failed.
func (m *instanceLoad) isEjected(now int64) bool {
	until := m.ejected.Load()
	return until != 0 && now < until
}

// nextCallCost estimates the cost of a further call: the average latency, times the calls under way
// with that one, divided by the weight.
//
//   - While no call is under way, the average counts less with time: an instance that was slow gets
//     another call some time, and one call at a time while it is slow.
//   - The cost of an instance without a call is low, so that it gets one. Until that call ends, the
//     time since the instance was listed counts as its average, so that an instance that does not
//     answer gets few.
func (m *listedInstance) nextCallCost(now int64) float64 {
	average, calls, age := math.Float64frombits(m.latency.Load()), m.calls.Load(), now-m.measured.Load()
	switch {
	case calls == 0:
		average *= timeWeight(age)
	case average == 0:
		average = float64(age)
	}
	return max(1, average) * float64(calls+1) / float64(m.instance.Weight)
}

// chooseInstance picks one of the enabled instances, of which there is at least one. It skips
// ejected instances, unless the share of the others is below the panic threshold.
func (l *instanceList) chooseInstance(p *Pool, key string, now int64) *listedInstance {
	m := l.balance(p, key, now)
	if m == nil || !m.isEjected(now) {
		return m
	}
	notEjected := 0
	for _, one := range l.enabled {
		if !one.isEjected(now) {
			notEjected++
		}
	}
	if notEjected == 0 || float64(notEjected) < p.opts.threshold*float64(len(l.enabled)) {
		return m
	}
	if usable := l.balanceUsable(p, key, now); usable != nil {
		return usable
	}
	return m // the others were ejected meanwhile, too
}

// balanceUsable picks one of the instances that are not ejected, or nil if there is none. It
// divides the share of an ejected instance among all others, where the next one in the list would
// get it whole. So RoundRobin draws in place of an ejected instance.
func (l *instanceList) balanceUsable(p *Pool, key string, now int64) *listedInstance {
	switch p.opts.balancer {
	case RoundRobin:
		return l.drawUsable(now, func(*listedInstance) int { return 1 })
	case Weighted:
		return l.drawUsable(now, func(m *listedInstance) int { return m.instance.Weight })
	case Rendezvous:
		return l.highestScore(key, now, true)
	}
	first := l.drawUsable(now, func(*listedInstance) int { return 1 })
	second := l.drawUsable(now, func(m *listedInstance) int {
		if m == first {
			return 0
		}
		return 1
	})
	return cheaper(first, second, now)
}

// cheaper returns the instance for which a further call costs less. Each may be nil: other
// goroutines eject instances meanwhile.
func cheaper(first, second *listedInstance, now int64) *listedInstance {
	switch {
	case first == nil:
		return second
	case second != nil && second.nextCallCost(now) < first.nextCallCost(now):
		return second
	}
	return first
}

// drawUsable draws one of the instances that are not ejected, by shares of at least 0. It returns
// nil if these have no share together.
func (l *instanceList) drawUsable(now int64, share func(*listedInstance) int) (drawn *listedInstance) {
	total := 0
	for _, m := range l.enabled {
		if !m.isEjected(now) {
			total += share(m)
		}
	}
	if total == 0 {
		return nil
	}
	at := rand.IntN(total)
	for _, m := range l.enabled {
		if one := share(m); one > 0 && !m.isEjected(now) {
			drawn = m // or the last one, if others were ejected meanwhile
			if at -= one; at < 0 {
				break
			}
		}
	}
	return drawn
}

// balance picks one of the enabled instances by the pool's balancer, also an ejected one.
func (l *instanceList) balance(p *Pool, key string, now int64) *listedInstance {
	n := len(l.enabled)
	switch p.opts.balancer {
	case RoundRobin:
		return l.enabled[(p.picks.Add(1)-1)%uint64(n)]
	case Weighted:
		at := rand.IntN(l.totalWeight)
		index, _ := slices.BinarySearchFunc(l.enabled, at, func(m *listedInstance, at int) int {
			if m.weightsUpTo <= at {
				return -1
			}
			return 1
		})
		return l.enabled[index]
	case Rendezvous:
		return l.highestScore(key, now, false)
	}
	random := rand.Uint64() // each half draws one instance: n is far below 2^32
	a := scaleBelow(random>>32, n)
	b := a + 1 + scaleBelow(random&math.MaxUint32, max(1, n-1))
	if b >= n {
		b %= n
	}
	return cheaper(l.enabled[a], l.enabled[b], now)
}

// scaleBelow scales a random number below 2^32 to one below n.
func scaleBelow(random uint64, n int) int { return int(random * uint64(n) >> 32) }

// highestScore returns the enabled instance with the highest score for a key (rendezvous hashing),
// with skipEjected the one of those that are not ejected, or nil. An instance's score does not
// depend on the other instances.
func (l *instanceList) highestScore(key string, now int64, skipEjected bool) *listedInstance {
	var best *listedInstance
	wanted, highest := hashText(key), math.Inf(-1)
	for _, m := range l.enabled {
		if skipEjected && m.isEjected(now) {
			continue
		}
		mixed := mixBits(wanted ^ m.hash)
		score := float64(mixed >> 11)
		if l.weighted {
			score = -float64(m.instance.Weight) / math.Log((score+0.5)/(1<<53))
		}
		if best == nil || score > highest {
			best, highest = m, score
		}
	}
	return best
}

// hashText returns the FNV-1a hash of a text, mixed. All processes must compute the same hash, so
// it must not change.
func hashText(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return mixBits(h)
}

// mixBits is the last step of MurmurHash3: each bit of h affects all bits of the result.
func mixBits(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
