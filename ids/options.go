package ids

import (
	"fmt"
	"time"
)

// SequenceOption changes how a sequence works.
type SequenceOption func(*sequenceOptions) error

type sequenceOptions struct {
	first       int64 // the first number of a sequence whose node is missing
	last        int64
	least, most int64 // numbers in a block
}

func sequenceDefaults() sequenceOptions {
	return sequenceOptions{first: 1, last: 1<<63 - 2, least: 128, most: 1 << 30}
}

// WithFirst sets the number at which a sequence begins if its node is missing, by default 1. It
// must be 0 to 2^63-2.
func WithFirst(first int64) SequenceOption {
	return func(o *sequenceOptions) error {
		if first < 0 || first > 1<<63-2 {
			return fmt.Errorf("%w: first number %d, it must be 0 to 2^63-2", errOption, first)
		}
		o.first = first
		return nil
	}
}

// WithLast sets the last number of a sequence, 1 to 2^63-2, which is the default. After it Next
// returns ErrExhausted. JavaScript keeps integers up to 1<<53-1 exact. Give all sequences at the
// path the same last number: it is not stored.
func WithLast(last int64) SequenceOption {
	return func(o *sequenceOptions) error {
		if last < 1 || last > 1<<63-2 {
			return fmt.Errorf("%w: last number %d, it must be 1 to 2^63-2", errOption, last)
		}
		o.last = last
		return nil
	}
}

// WithBlocks sets the smallest and the largest block: how many numbers are reserved with one write,
// by default 128 to 2^30, at most 2^40. A process that ends loses at most two blocks.
func WithBlocks(least, most int64) SequenceOption {
	return func(o *sequenceOptions) error {
		if least < 1 || most < least || most > 1<<40 {
			return fmt.Errorf("%w: blocks of %d to %d numbers, they must be 1 to 2^40, the smaller first",
				errOption, least, most)
		}
		o.least, o.most = least, most
		return nil
	}
}

// CounterOption changes how a counter works.
type CounterOption func(*counterOptions) error

type counterOptions struct{ width int }

// WithSharedCount makes a counter use the bytes of Curator's SharedCount: 4 instead of 8, for
// numbers from -2^31 to 2^31-1.
func WithSharedCount() CounterOption {
	return func(o *counterOptions) error {
		o.width = 4
		return nil
	}
}

// WithText makes a counter use the bytes of kazoo's Counter: the number as decimal text. An empty
// node is 0, as for kazoo.
func WithText() CounterOption {
	return func(o *counterOptions) error {
		o.width = 0
		return nil
	}
}

// WorkerOption changes how a worker works.
type WorkerOption func(*workerOptions) error

type workerOptions struct {
	slots int
	epoch int64 // in milliseconds of Unix time
}

func workerDefaults(slots int) workerOptions {
	return workerOptions{slots: slots, epoch: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()}
}

// WithEpoch sets the time from which ids count, by default the beginning of 2025 (UTC), to the
// millisecond. The ids last for 69 years from then. It must lie in the years 1970 to 2100. All
// workers of the path must have the same epoch, which the path's node stores.
func WithEpoch(epoch time.Time) WorkerOption {
	return func(o *workerOptions) error {
		if y := epoch.UTC().Year(); y < 1970 || y > 2100 {
			return fmt.Errorf("%w: epoch %v, it must lie in the years 1970 to 2100", errOption, epoch)
		}
		o.epoch = epoch.UnixMilli()
		return nil
	}
}

func checkSlotCount(slots int) error {
	if slots < 1 || slots > 1<<16 {
		return fmt.Errorf("%w: %d slots, there must be 1 to 65536", errOption, slots)
	}
	return nil
}
