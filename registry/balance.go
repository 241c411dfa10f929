package registry

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// listMember is an instance of a list, with its load as this process has measured it.
type listMember struct {
	instance Instance
	hash     uint64 // of the id
	upTo     int    // the sum of the weights of the ready members up to this one
	*instanceLoad
}

// instanceLoad is the load of an instance as this process has measured it. It outlives lists.
type instanceLoad struct {
	calls    atomic.Int64  // under way
	latency  atomic.Uint64 // bits of a float64: the moving average in nanoseconds, 0 before the first call
	failures atomic.Int32  // in a row
	ejected  atomic.Int64  // the time until which the instance gets no calls; 0: it is not ejected
}

// started is the origin of monotonicNow.
var started = time.Now()

// monotonicNow is the time since started. It reads the monotonic clock only, in half the time of time.Now.
func monotonicNow() int64 { return int64(time.Since(started)) }

// newest is the weight of the latest call in the average.
const newest = 0.2

// callEnded counts the end of a call. It returns how long the call took, and whether its failure has ejected the instance.
func (m *instanceLoad) callEnded(o *poolOptions, began int64, err error) (length time.Duration, ejected bool) {
	m.calls.Add(-1)
	now := monotonicNow()
	length = time.Duration(now - began)
	took := float64(length)
	for {
		bits := m.latency.Load()
		average := math.Float64frombits(bits)
		if average == 0 {
			average = took
		}
		if m.latency.CompareAndSwap(bits, math.Float64bits(max(1, average+newest*(took-average)))) {
			break
		}
	}
	if err == nil { // a write costs more than a read
		if m.failures.Load() != 0 {
			m.failures.Store(0)
		}
		if m.ejected.Load() != 0 {
			m.ejected.Store(0)
		}
	} else if m.failures.Add(1) >= o.failures {
		ejected = !m.isEjected(now)
		m.ejected.Store(now + int64(o.ejection)) // the first failure behind it ejects it again
	}
	return length, ejected
}

// isEjected reports whether an instance gets no calls because they have failed.
func (m *instanceLoad) isEjected(now int64) bool {
	until := m.ejected.Load()
	return until != 0 && now < until
}

// nextCallCost estimates the cost of a further call: the average latency, times the calls under way, by the weight. An instance without a call so far
// is cheap, so that it is tried.
func (m *listMember) nextCallCost() float64 {
	return max(1, math.Float64frombits(m.latency.Load())) * float64(m.calls.Load()+1) / float64(m.instance.Weight)
}

// chooseMember picks one of the ready members; there is at least one. It skips ejected members, unless fewer members than the panic threshold are left.
func (l *instanceList) chooseMember(p *Pool, key string, now int64) *listMember {
	m := l.drawMember(p, key, now, false)
	if m == nil || !m.isEjected(now) {
		return m
	}
	healthy := 0
	for _, one := range l.ready {
		if !one.isEjected(now) {
			healthy++
		}
	}
	if healthy == 0 || float64(healthy) < p.opts.threshold*float64(len(l.ready)) {
		return m
	}
	return l.drawMember(p, key, now, true)
}

// drawMember picks a member by the balancer. With healthyOnly it skips ejected members; at least one must not be ejected.
func (l *instanceList) drawMember(p *Pool, key string, now int64, healthyOnly bool) *listMember {
	n := len(l.ready)
	switch p.opts.balancer {
	case RoundRobin:
		return l.firstUsableFrom(int((p.turn.Add(1)-1)%uint64(n)), now, healthyOnly)
	case Weighted:
		at := rand.IntN(l.total)
		place, _ := slices.BinarySearchFunc(l.ready, at, func(m *listMember, at int) int {
			if m.upTo <= at {
				return -1
			}
			return 1
		})
		return l.firstUsableFrom(place, now, healthyOnly)
	case Rendezvous:
		return l.highestScore(key, now, healthyOnly)
	}
	random := rand.Uint64() // both draws are of one number: n is far below 2^32
	a := scaleBelow(random>>32, n)
	b := a + 1 + scaleBelow(random&math.MaxUint32, max(1, n-1))
	if b >= n {
		b %= n
	}
	first, second := l.firstUsableFrom(a, now, healthyOnly), l.firstUsableFrom(b, now, healthyOnly)
	if second.nextCallCost() < first.nextCallCost() {
		return second
	}
	return first
}

// scaleBelow makes a number below n of a random one below 2^32.
func scaleBelow(random uint64, n int) int { return int(random * uint64(n) >> 32) }

// firstUsableFrom is the first usable member from a place on.
func (l *instanceList) firstUsableFrom(place int, now int64, healthyOnly bool) *listMember {
	if !healthyOnly {
		return l.ready[place]
	}
	n := len(l.ready)
	for i := range n {
		if m := l.ready[(place+i)%n]; !m.isEjected(now) {
			return m
		}
	}
	return l.ready[place] // it was ejected meanwhile
}

// highestScore returns the member with the highest score for a key (rendezvous hashing). A score does not depend on the other members.
func (l *instanceList) highestScore(key string, now int64, healthyOnly bool) *listMember {
	var best *listMember
	wanted, highest := hashText(key), math.Inf(-1)
	for _, m := range l.ready {
		if healthyOnly && m.isEjected(now) {
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
	if best == nil {
		return l.ready[0] // all were ejected meanwhile
	}
	return best
}

// hashText is FNV-1a, mixed. It is the same in all processes, and must not change.
func hashText(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return mixBits(h)
}

// mixBits is the last step of MurmurHash3: each bit of h changes all of the result.
func mixBits(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
