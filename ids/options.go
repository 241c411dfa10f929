package ids

import (
	"fmt"
	"time"
)

// SequenceOption changes how a sequence works.
type SequenceOption func(*sequenceOptions) error

type sequenceOptions struct {
	first       int64 // of a sequence whose node is missing
	last        int64
	least, most int64 // of a block
}

func sequenceDefaults() sequenceOptions {
	return sequenceOptions{first: 1, last: 1<<63 - 2, least: 128, most: 1 << 30}
}

// WithFirst begins a sequence at another number than 1 if its node is missing. It must not be negative.
func WithFirst(first int64) SequenceOption {
	return func(o *sequenceOptions) error {
		if first < 0 || first > 1<<63-2 {
			return fmt.Errorf("%w: first number %d, it must be 0 to 2^63-2", ErrOption, first)
		}
		o.first = first
		return nil
	}
}

// WithLast ends a sequence at this number: then Next returns ErrExhausted. 1<<53-1 keeps ids exact in JavaScript. All users of the path
// should have the same; it is not stored.
func WithLast(last int64) SequenceOption {
	return func(o *sequenceOptions) error {
		if last < 1 || last > 1<<63-2 {
			return fmt.Errorf("%w: last number %d, it must be 1 to 2^63-2", ErrOption, last)
		}
		o.last = last
		return nil
	}
}

// WithBlocks bounds how many numbers are reserved at a time, by default 128 to 2^30. A process that ends loses at most two blocks.
func WithBlocks(least, most int64) SequenceOption {
	return func(o *sequenceOptions) error {
		if least < 1 || most < least || most > 1<<40 {
			return fmt.Errorf("%w: blocks of %d to %d numbers, they must be 1 to 2^40, the smaller first", ErrOption, least, most)
		}
		o.least, o.most = least, most
		return nil
	}
}

// CounterOption changes how a counter works.
type CounterOption func(*counterOptions) error

type counterOptions struct{ width int }

// WithSharedCount gives a counter the bytes of Curator's SharedCount: 4 instead of 8.
func WithSharedCount() CounterOption {
	return func(o *counterOptions) error {
		o.width = 4
		return nil
	}
}

// WithText gives a counter the bytes of kazoo's Counter: the number as decimal text. An empty node is 0, as for kazoo.
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

// WithEpoch sets the time that ids count from, by default the beginning of 2025; they last for 69 years from then. All workers of the path must have
// the same one, which is stored there. It must lie in the years 1970 to 2100.
func WithEpoch(epoch time.Time) WorkerOption {
	return func(o *workerOptions) error {
		if y := epoch.UTC().Year(); y < 1970 || y > 2100 {
			return fmt.Errorf("%w: epoch %v, it must lie in the years 1970 to 2100", ErrOption, epoch)
		}
		o.epoch = epoch.UnixMilli()
		return nil
	}
}

func checkSlotCount(slots int) error {
	if slots < 1 || slots > 1<<16 {
		return fmt.Errorf("%w: %d slots, there must be 1 to 65536", ErrOption, slots)
	}
	return nil
}
