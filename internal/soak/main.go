// Command soak runs the pipeline example beside three real servers for a long time, with workers killed and hired all the
// while, and measures whether anything grows:
//
//	make soak DURATION=1h
//
// Every ten seconds it writes memory, goroutines, descriptors and what the servers count into a CSV. At the end, and at
// Ctrl-C, it fits a line to each series after a warm-up, says which are flat, and draws them. Its exit status is 0 if all
// are and the pipeline's sum is right. It reads /proc, so that it measures on Linux only.
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

	"github.com/lockstep-go/lockstep/internal/ensemble"
)

type options struct {
	lasts    time.Duration
	every    time.Duration
	warmUp   time.Duration
	pipeline string // the program
	out      string // files' names, without their ends
	table    string // of a run that is over, to be drawn again
	workers  int
	spared   int
	items    int
	kills    int
	effort   time.Duration
}

func main() {
	var o options
	flag.DurationVar(&o.lasts, "for", time.Hour, "how long")
	flag.DurationVar(&o.every, "every", 10*time.Second, "time between samples")
	flag.DurationVar(&o.warmUp, "warm-up", 0, "what is left out of the fits (default a sixth of the time)")
	flag.StringVar(&o.pipeline, "pipeline", "bin/pipeline", "the pipeline example, built")
	flag.StringVar(&o.out, "out", "bin/soak", "where to write: .csv, .svg, .txt, .events")
	flag.StringVar(&o.table, "draw", "", "only draw this .csv of a former run again")
	flag.IntVar(&o.workers, "workers", 5, "the pipeline's workers")
	flag.IntVar(&o.spared, "spare", 2, "how many of them live as long as the run")
	flag.IntVar(&o.items, "items", 60, "items of each phase")
	flag.IntVar(&o.kills, "kills", 4, "workers killed in each round")
	flag.DurationVar(&o.effort, "effort", 500*time.Millisecond, "how long one item takes")
	flag.Parse()
	if o.warmUp == 0 {
		o.warmUp = o.lasts / 6
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

// soak reports whether all measures have stayed level and the sum is right.
func soak(ctx context.Context, o options) (ok bool, err error) {
	if o.pipeline, err = filepath.Abs(o.pipeline); err != nil {
		return false, err
	}
	// The servers' heaps are there in full from the beginning, so that what grows later is no heap.
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
	return conclude(o, r, p.result(time.Since(began)))
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

// conclude writes the summary and the plot.
func conclude(o options, r *recorder, result result) (ok bool, err error) {
	s := summarise(r, result, o.warmUp)
	text := s.text()
	fmt.Print(text)
	err = errors.Join(
		os.WriteFile(o.out+".txt", []byte(text), 0o644),
		os.WriteFile(o.out+".svg", []byte(draw(r.series)), 0o644))
	return s.ok(), err
}
