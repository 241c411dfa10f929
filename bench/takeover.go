package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

// takeover is W5: the time from the leader's end to the next leader's term.
func takeover(s settings) error {
	if s.how != "kill" && s.how != "close" {
		return fmt.Errorf("-how %q: want kill or close", s.how)
	}
	n := orDefault(s.n, 20)
	laps := make([]time.Duration, 0, n)
	var total time.Duration
	var stats watchdogs
	for range n {
		d, err := takeoverOnce(s, &stats)
		if err != nil {
			return err
		}
		laps, total = append(laps, d), total+d
	}
	params := map[string]any{"how": s.how, "session": stats.session.Seconds(), "watchdog": s.watchdog}
	r := newResult(s, "lockstep", params, n, total, laps)
	r.OpsPerS, r.Worst = nil, ptr(ms(slices.Max(laps)))
	stats.addTo(r)
	return r.print()
}

func takeoverOnce(s settings, stats *watchdogs) (time.Duration, error) {
	path := fmt.Sprintf("%s/w5-%d", root, rand.Int64())
	a, err := startProcess(s, path)
	if err != nil {
		return 0, err
	}
	defer a.end()
	watchdog, err := stats.awaitArmed(s, a)
	if err != nil {
		return 0, err
	}
	b, err := startProcess(s, path)
	if err != nil {
		return 0, err
	}
	defer b.end()
	if _, err := b.readTime("UP"); err != nil {
		return 0, err
	}
	before := watchdog.cpu()
	time.Sleep(time.Second + rand.N(time.Second))
	stats.measure(watchdog, before)
	gone := time.Now()
	if s.how == "kill" {
		a.end()
	} else if gone, err = a.resign(); err != nil {
		return 0, err
	}
	led, err := b.readTime("LEADER")
	if err != nil {
		return 0, err
	}
	_, err = b.resign()
	return led.Sub(gone), err
}

// watchdogs collects measurements of the leaders' watchdogs.
type watchdogs struct {
	session  time.Duration // as granted
	arming   []time.Duration
	rss, cpu int64 // the most memory of one, in KiB, and the most processor time while it was idle
}

// awaitArmed waits until a leader leads and, if it has a watchdog, until that is armed.
func (d *watchdogs) awaitArmed(s settings, leader *process) (watchdogProcess, error) {
	granted, err := leader.readWord("SESSION")
	if err != nil {
		return 0, err
	}
	if d.session, err = time.ParseDuration(granted); err != nil {
		return 0, err
	}
	if _, err = leader.readTime("LEADER"); err != nil || !s.watchdog {
		return 0, err
	}
	var pid int64
	var took time.Duration
	line, err := leader.readWord("ARMED")
	if err == nil {
		_, err = fmt.Sscan(line, &pid, (*int64)(&took))
	}
	d.arming = append(d.arming, took)
	return watchdogProcess(pid), err
}

// measure records the memory of a watchdog, and the processor time that it used while idle.
func (d *watchdogs) measure(w watchdogProcess, before time.Duration) {
	if w != 0 {
		d.rss, d.cpu = max(d.rss, w.rss()), max(d.cpu, int64(w.cpu()-before))
	}
}

func (d *watchdogs) addTo(r *result) {
	if len(d.arming) == 0 {
		return
	}
	slices.Sort(d.arming)
	r.Arming = ptr(ms(d.arming[len(d.arming)/2]))
	if d.rss > 0 {
		r.WatchdogKiB, r.WatchdogCPU = ptr(int(d.rss)), ptr(ms(time.Duration(d.cpu)))
	}
}

// candidateProcess is one process of W5: it campaigns, and resigns when its standard input ends.
func candidateProcess(s settings) error {
	ctx := context.Background()
	var opts []framework.Option
	armed := make(chan string, 1)
	if s.watchdog {
		opts = append(opts, framework.WithWatchdog(), framework.WithLogger(armedLogger(armed)))
	}
	c, err := open(s, opts...)
	if err != nil {
		return err
	}
	defer closeAll(c)
	session, err := c.Session(ctx)
	if err != nil {
		return err
	}
	fmt.Println("SESSION", session.Timeout())
	printTime("UP")
	term, err := election.New(c, s.member).Campaign(ctx)
	if err != nil {
		return err
	}
	printTime("LEADER")
	if s.watchdog {
		fmt.Println("ARMED", <-armed)
	}
	bufio.NewScanner(os.Stdin).Scan()
	printTime("RESIGN")
	return term.Resign(ctx)
}

// watchdogProcess is the process id of a watchdog, or 0.
type watchdogProcess int

// rss returns the memory of the watchdog's own, in KiB, or 0 if the system does not report it.
func (d watchdogProcess) rss() int64 {
	return d.field("status", "RssAnon:")
}

// cpu returns the processor time that the watchdog has used.
func (d watchdogProcess) cpu() (total time.Duration) {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", d)) // none where that cannot be known
	for _, t := range threads {
		total += time.Duration(d.field("task/"+t.Name()+"/schedstat", ""))
	}
	return total
}

// field returns the number after a word of a file, or the first number if word is "".
func (d watchdogProcess) field(file, word string) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", d, file))
	if err != nil {
		return 0
	}
	defer f.Close()
	words := bufio.NewScanner(f)
	words.Split(bufio.ScanWords)
	for words.Scan() {
		if word != "" && words.Text() != word || word != "" && !words.Scan() {
			continue
		}
		n, err := strconv.ParseInt(words.Text(), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}
