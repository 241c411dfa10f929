package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// pipeline is the process of the pipeline example.
type pipeline struct {
	cmd   *exec.Cmd
	out   bytes.Buffer
	ended chan struct{}
	err   error // once ended
}

// result is the pipeline's report, and how the pipeline ended.
type result struct {
	err  error
	took time.Duration
	cpu  time.Duration // of all the pipeline's processes

	Rounds   int   `json:"rounds"`
	Sum      int64 `json:"sum"`
	Want     int64 `json:"want"`
	Items    int   `json:"items"`
	Returned int   `json:"returned"`
	Repeated int   `json:"repeated"`
	Kills    []struct {
		Leader bool `json:"leader"`
	} `json:"kills"`
	Terms []struct{} `json:"terms"`
}

// startPipeline starts the pipeline. When ctx ends, the pipeline is asked to end.
func startPipeline(ctx context.Context, o options, servers []string) (*pipeline, error) {
	events := o.out + ".events"
	if err := os.RemoveAll(events); err != nil {
		return nil, err
	}
	p := &pipeline{ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, o.pipeline, "--json", "--zk", strings.Join(servers, ","), "--events", events,
		"--for", o.duration.String(), "--workers", strconv.Itoa(o.workers), "--spare", strconv.Itoa(o.unkilled),
		"--items", strconv.Itoa(o.items), "--kills", strconv.Itoa(o.kills), "--effort", o.effort.String())
	p.cmd.Stdout, p.cmd.Stderr = &p.out, os.Stderr
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(os.Interrupt) }
	p.cmd.WaitDelay = time.Minute
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// kill kills the pipeline. Its workers end with it.
func (p *pipeline) kill() error {
	err := p.cmd.Process.Kill()
	<-p.ended
	return err
}

// result returns the result. It must be called after the end. An interrupted pipeline has no
// report.
func (p *pipeline) result(took time.Duration) result {
	r := result{took: took, err: p.err}
	if p.out.Len() > 0 {
		if err := json.Unmarshal(p.out.Bytes(), &r); err != nil {
			r.err = fmt.Errorf("the pipeline's report: %w", err)
		}
	}
	r.cpu = p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	return r
}
