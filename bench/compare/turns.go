package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// figure is what one process has measured: its only line of output.
type figure struct {
	PerS float64 `json:"per_s,omitempty"`
	MS   float64 `json:"ms,omitempty"`
}

func (f figure) in(unit string) float64 {
	if unit == perSecond {
		return f.PerS
	}
	return f.MS
}

// compare starts the servers that the jobs need and makes each measurement once in each turn. The
// libraries that do the same work follow each other, in each turn from another one on.
func compare(ctx context.Context, selected []job, turns int, warmup, span time.Duration) (r *report, err error) {
	needed := map[string]bool{}
	for _, j := range selected {
		needed[j.servers] = true
	}
	s, err := startStores(ctx, needed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r = newReport(selected, turns, s)
	for turn := range turns {
		for _, w := range works {
			var same []int
			for i, j := range selected {
				if j.work == w.name {
					same = append(same, i)
				}
			}
			for k := range same {
				i := same[(k+turn)%len(same)]
				j := selected[i]
				f, err := measureJob(ctx, j, s, warmup, span)
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				if err != nil {
					return nil, fmt.Errorf("%v: %w", j, err)
				}
				value := f.in(w.unit)
				fmt.Fprintf(os.Stderr, "turn %d of %d  %v  %.4g %s\n", turn+1, turns, j, value, w.unit)
				r.Rows[i].Figures = append(r.Rows[i].Figures, value)
			}
		}
	}
	r.summarize()
	return r, nil
}

// measureJob runs the process that makes one measurement. It may take two minutes.
func measureJob(ctx context.Context, j job, s *stores, warmup, span time.Duration) (f figure, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	servers, err := s.addresses(j)
	if err != nil {
		return f, err
	}
	program, err := programOf(j.peer)
	if err != nil {
		return f, err
	}
	command := exec.CommandContext(ctx, program[0], append(program[1:], "-measure", j.work, "-peer", j.peer,
		"-servers", strings.Join(servers, ","), "-warmup", warmup.String(), "-t", span.String())...)
	var out, messages bytes.Buffer
	command.Stdout, command.Stderr = &out, &messages
	if err := command.Run(); err != nil {
		return f, fmt.Errorf("%w: %s", err, strings.TrimSpace(messages.String()))
	}
	return f, json.Unmarshal(out.Bytes(), &f)
}

// programOf returns the command that measures a library.
func programOf(string) ([]string, error) {
	self, err := os.Executable()
	return []string{self}, err
}
