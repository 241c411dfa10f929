package clock

import (
	"container/heap"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bootAlarms are the alarms of a bootClock. They share one timerfd and one goroutine, so a process
// with many sessions needs one descriptor for all of their alarms. Both end with the last alarm.
type bootAlarms struct {
	mu    sync.Mutex
	timer *os.File // a timerfd; nil while there are no alarms
	fd    int      // the timer's descriptor
	count int      // the alarms that are not stopped
	set   alarmHeap
	armed time.Duration // when the timer expires
}

// bootAlarm is an alarm of bootAlarms. Guarded by their mutex.
type bootAlarm struct {
	alarms  *bootAlarms
	ring    func()
	at      time.Duration
	index   int // in the heap; -1 while the alarm is not set
	stopped bool
}

// add returns an alarm that is not set, or an error if it gets no timerfd.
func (s *bootAlarms) add(ring func()) (*bootAlarm, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
		if err != nil {
			return nil, err
		}
		s.fd, s.timer, s.armed = fd, os.NewFile(uintptr(fd), "lease-alarms"), 0
		go s.waitForTimer(s.timer)
	}
	s.count++
	return &bootAlarm{alarms: s, ring: ring, index: -1}, nil
}

// waitForTimer rings the alarms whenever the timer expires, until the timer is closed.
func (s *bootAlarms) waitForTimer(timer *os.File) {
	var expirations [8]byte
	for {
		if _, err := timer.Read(expirations[:]); err != nil {
			return
		}
		s.ringDue()
	}
}

// ringDue rings the alarms whose time has come.
func (s *bootAlarms) ringDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = 0
	for now := bootTime(); len(s.set) > 0 && s.set[0].at <= now; {
		go heap.Pop(&s.set).(*bootAlarm).ring()
	}
	s.arm()
}

// arm sets the timer to the first alarm, unless it expires before: then it is set again. So an
// alarm that is set and stopped all the time costs no call of the system. Guarded by mu.
func (s *bootAlarms) arm() {
	if len(s.set) == 0 || s.armed != 0 && s.armed <= s.set[0].at {
		return // a timer that expires without an alarm rings none
	}
	s.armed = s.set[0].at
	// With 0 the timer would not expire at all.
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, s.armed.Nanoseconds()))}
	if err := unix.TimerfdSettime(s.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		panic("clock: timerfd_settime: " + err.Error()) // only a programming error makes it fail
	}
}

// Set implements Alarm.
func (a *bootAlarm) Set(at time.Duration) {
	s := a.alarms
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.stopped {
		return
	}
	a.at = max(1, at)
	if a.index < 0 {
		heap.Push(&s.set, a)
	} else {
		heap.Fix(&s.set, a.index)
	}
	s.arm()
}

// Stop implements Alarm.
func (a *bootAlarm) Stop() {
	s := a.alarms
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.stopped {
		return
	}
	a.stopped = true
	if a.index >= 0 {
		heap.Remove(&s.set, a.index)
	}
	if s.count--; s.count == 0 {
		s.timer.Close()
		s.timer = nil
	}
}

// alarmHeap is a heap of alarms, by their times.
type alarmHeap []*bootAlarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at < h[j].at }

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *alarmHeap) Push(x any) {
	a := x.(*bootAlarm)
	a.index = len(*h)
	*h = append(*h, a)
}

func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.index = -1
	return a
}
