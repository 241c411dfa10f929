package scheduler

import (
	"fmt"
	"strings"
	"time"
)

// every is the schedule of @every. It counts from 1970-01-01 UTC, so that all members agree on its ticks.
type every struct {
	seconds int64
	zone    *time.Location
}

func parseEvery(period string, zone *time.Location) (ticks, error) {
	d, err := time.ParseDuration(strings.TrimSpace(period))
	switch {
	case err != nil:
		return nil, err
	case d < time.Second:
		return nil, fmt.Errorf("a period of %v is less than a second", d)
	case d%time.Second != 0:
		return nil, fmt.Errorf("a period of %v is not of whole seconds", d)
	}
	return every{int64(d / time.Second), zone}, nil
}

func (e every) next(t time.Time) time.Time {
	return time.Unix((e.number(t)+1)*e.seconds, 0).In(e.zone)
}

func (e every) count(from, to time.Time) int64 { return max(0, e.number(to)-e.number(from)) }

// number counts the ticks from 1970 to t.
func (e every) number(t time.Time) int64 {
	n := t.Unix() / e.seconds
	if t.Unix()%e.seconds < 0 {
		n--
	}
	return n
}
