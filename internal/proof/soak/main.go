// Command soak runs the pipeline example on three real servers for a long time, while workers are
// killed and replaced, and measures whether anything grows:
//
//	make soak DURATION=1h
//
// Every ten seconds it writes memory, goroutines, descriptors and the servers' counters into a CSV
// file. At the end, and at Ctrl-C, it fits a line to each series after a warm-up, reports which
// series grow, and draws them. Its exit status is 0 if none grows and the pipeline's sum is right.
// It reads /proc, so it measures on Linux only.
//
// To add a measure, add it to the constants in recorder.go and read it in sample.process, or add a
// counter of the servers to serverCounters. A panel in plot.go draws it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

type options struct {
	duration time.Duration
	every    time.Duration
	warmUp   time.Duration
	pipeline string // the program
	out      string // files' names, without their ends
	table    string // of a run that is over, to be drawn again
	workers  int
	unkilled int
	items    int
	kills    int
	effort   time.Duration
}

func main() {
	var o options
	flag.DurationVar(&o.duration, "for", time.Hour, "how long to run")
	flag.DurationVar(&o.every, "every", 10*time.Second, "time between samples")
	flag.DurationVar(&o.warmUp, "warm-up", 0,
		"how much of the beginning to leave out of the fits (default a sixth of the time)")
	flag.StringVar(&o.pipeline, "pipeline", "bin/pipeline", "the built pipeline example")
	flag.StringVar(&o.out, "out", "bin/soak", "the files to write, without .csv, .svg, .txt and .events")
	flag.StringVar(&o.table, "draw", "", "only draw this .csv of an earlier run again")
	flag.IntVar(&o.workers, "workers", 5, "the pipeline's workers")
	flag.IntVar(&o.unkilled, "spare", 2, "how many workers are not killed")
	flag.IntVar(&o.items, "items", 60, "items of each phase")
	flag.IntVar(&o.kills, "kills", 4, "workers killed in each round")
	flag.DurationVar(&o.effort, "effort", 500*time.Millisecond, "how long one item takes")
	flag.Parse()
	if o.warmUp == 0 {
		o.warmUp = o.duration / 6
	}
	if o.table != "" {
		if err := redraw(o); err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ok, err := soak(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// soak reports whether no measure has grown and the sum is right.
func soak(ctx context.Context, o options) (ok bool, err error) {
	if o.pipeline, err = filepath.Abs(o.pipeline); err != nil {
		return false, err
	}
	// The servers allocate their whole heap at the start, so that later growth is not that of the
	// heap.
	if err := os.Setenv("JAVA_TOOL_OPTIONS", "-Xms128m -XX:+AlwaysPreTouch"); err != nil {
		return false, err
	}
	e, err := ensemble.Start(ctx, ensemble.Config{NoFsync: true, HeapMB: 128})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	p, err := startPipeline(ctx, o, e.Addrs())
	if err != nil {
		return false, err
	}
	began := time.Now()
	r, err := newRecorder(o, e.Addrs(), p.cmd.Process.Pid)
	if err == nil {
		err = watch(o, p, r, began)
	}
	if err != nil {
		return false, errors.Join(err, p.kill())
	}
	return writeSummary(o, r, p.result(time.Since(began)))
}

// watch takes samples until the pipeline has ended.
func watch(o options, p *pipeline, r *recorder, began time.Time) error {
	ticker := time.NewTicker(o.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := r.sample(time.Since(began)); err != nil {
				return err
			}
		case <-p.ended:
			return errors.Join(r.readEvents(), r.close())
		}
	}
}

// writeSummary writes the summary and the plot.
func writeSummary(o options, r *recorder, result result) (ok bool, err error) {
	s := summarise(r, result, o.warmUp)
	text := s.text()
	fmt.Print(text)
	err = errors.Join(
		os.WriteFile(o.out+".txt", []byte(text), 0o644),
		os.WriteFile(o.out+".svg", []byte(draw(r.series)), 0o644))
	return s.ok(), err
}
