package clock

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/testkit/descriptors"
)

// TestAlarmsShareADescriptor: a process has one descriptor for all alarms, and none without alarms.
func TestAlarmsShareADescriptor(t *testing.T) {
	before, c := descriptors.Alarms(), newBootClock(nil, nil)
	for range 3 {
		var alarms []Alarm
		for range 100 {
			alarms = append(alarms, c.NewAlarm(func() {}))
			alarms[len(alarms)-1].Set(bootTime() + time.Hour)
		}
		require.Equal(t, before+1, descriptors.Alarms())
		for _, a := range alarms {
			a.Stop()
		}
		for descriptors.Alarms() != before { // the goroutine that reads it closes it
			time.Sleep(time.Millisecond)
		}
	}
}

// TestEachAlarmRingsAtItsOwnTime: alarms that share a descriptor ring as if each had its own one:
// at its last setting, once, and not after a Stop.
func TestEachAlarmRingsAtItsOwnTime(t *testing.T) {
	type alarm struct {
		Alarm
		at    time.Duration
		early atomic.Bool
		rings atomic.Int32
	}
	c := newBootClock(nil, nil)
	later := c.NewAlarm(func() { t.Error("an alarm has rung an hour early") })
	stopped := c.NewAlarm(func() { t.Error("an alarm has rung after it was stopped") })
	var rung sync.WaitGroup
	alarms := make([]*alarm, 500)
	for i := range alarms {
		a := &alarm{}
		a.Alarm = c.NewAlarm(func() {
			a.early.Store(bootTime() < a.at)
			a.rings.Add(1)
			rung.Done()
		})
		alarms[i] = a
	}
	rung.Add(len(alarms))
	now := bootTime()
	later.Set(now + 50*time.Millisecond)
	later.Set(now + time.Hour)
	stopped.Set(now + time.Hour)
	stopped.Stop()
	stopped.Set(now)
	for _, i := range rand.Perm(len(alarms)) {
		alarms[i].at = now + time.Duration(i)*200*time.Microsecond
		alarms[i].Set(now + time.Hour)
		alarms[i].Set(alarms[i].at)
	}
	rung.Wait()
	for _, a := range alarms {
		require.False(t, a.early.Load())
		require.EqualValues(t, 1, a.rings.Load())
		a.Stop()
	}
	later.Stop()
}

// TestARingSetsAndStopsItsOwnAlarm, while other alarms come and go.
func TestARingSetsAndStopsItsOwnAlarm(t *testing.T) {
	c := newBootClock(nil, nil)
	var done sync.WaitGroup
	done.Add(50)
	for range 50 {
		created, rings := make(chan Alarm, 1), 0
		a := c.NewAlarm(func() {
			a := <-created
			if rings++; rings == 20 {
				a.Stop()
				done.Done()
				return
			}
			created <- a
			a.Set(bootTime() - time.Second)
		})
		created <- a
		a.Set(bootTime() + time.Millisecond)
	}
	done.Wait()
}
