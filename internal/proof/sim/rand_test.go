package sim

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// newRand returns the random generator of one concern of a seed. Its draws do not affect other
// concerns.
func newRand(seed uint64, concern string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(concern))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// durationBetween draws a duration in [from, to).
func durationBetween(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// oneIn is true with probability 1/n.
func oneIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// pickOne draws one of several values.
func pickOne[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomReader reads random bytes. Any goroutine may use it.
type randomReader struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (b *randomReader) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var word [8]byte
	for i := range p {
		if i%8 == 0 {
			binary.LittleEndian.PutUint64(word[:], b.r.Uint64())
		}
		p[i] = word[i%8]
	}
	return len(p), nil
}
