//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	for name := range s.ensembles { // Java compiles what it does often, which takes some seconds
		j := job{"uncontended", name, barePeer}
		if _, err := measureJob(ctx, j, s, 0, 4*time.Second); err != nil {
			return nil, fmt.Errorf("warm up %s: %w", name, err)
		}
	}
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
				if err != nil && ctx.Err() == nil {
					fmt.Fprintf(os.Stderr, "%v: %v; once more\n", j, err)
					f, err = measureJob(ctx, j, s, warmup, span)
				}
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

// measureJob makes one measurement, by one process or, of take-overs, by two. It may take two
// minutes.
func measureJob(ctx context.Context, j job, s *stores, warmup, span time.Duration) (f figure, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	servers, err := s.addresses(j)
	if err != nil {
		return f, err
	}
	switch j.work {
	case "crash":
		return takeOver(ctx, j.peer, "lock", servers, func(m *member) (time.Time, error) {
			killed := time.Now()
			m.kill()
			return killed, nil
		})
	case "election":
		return takeOver(ctx, j.peer, "election", servers, func(m *member) (time.Time, error) {
			m.release()
			return m.await(ctx, "RELEASED")
		})
	}
	command, err := s.command(ctx, j.peer, j.work, servers)
	if err != nil {
		return f, err
	}
	command.Args = append(command.Args, "-warmup", warmup.String(), "-t", span.String(), "-session", "10s", "-pids",
		s.pids(j.servers))
	var out, messages bytes.Buffer
	command.Stdout, command.Stderr = &out, &messages
	if err := command.Run(); err != nil {
		return f, fmt.Errorf("%w: %s", err, strings.TrimSpace(messages.String()))
	}
	return f, json.Unmarshal(out.Bytes(), &f)
}

// takeoverSession is the session timeout of members.
const takeoverSession = 4 * time.Second

// takeOver starts a holder and a waiter, ends the holder, and measures until the waiter holds.
func takeOver(ctx context.Context, peer, work string, servers []string, end func(*member) (time.Time, error)) (f figure,
	err error) {
	name := fmt.Sprintf("take-over-%d", time.Now().UnixNano())
	holder, err := startMember(ctx, peer, work, servers, name, takeoverSession)
	if err != nil {
		return f, err
	}
	defer holder.kill()
	if _, err := holder.await(ctx, "HELD"); err != nil {
		return f, err
	}
	waiter, err := startMember(ctx, peer, work, servers, name, takeoverSession)
	if err != nil {
		return f, err
	}
	defer waiter.kill()
	if _, err := waiter.await(ctx, "UP"); err != nil {
		return f, err
	}
	if err := pause(ctx, time.Second+rand.N(takeoverSession/2)); err != nil {
		return f, err
	}
	ended, err := end(holder)
	if err != nil {
		return f, err
	}
	held, err := waiter.await(ctx, "HELD")
	if err != nil {
		return f, err
	}
	waiter.release()
	_, err = waiter.await(ctx, "RELEASED")
	return figure{MS: float64(held.Sub(ended)) / float64(time.Millisecond)}, errors.Join(err, waiter.end(ctx))
}

// member is a process that holds or waits; see measurement.member.
type member struct {
	command *exec.Cmd
	input   io.WriteCloser
	errors  bytes.Buffer
	ended   chan struct{}

	mu   sync.Mutex
	said map[string]time.Time
	news chan struct{} // closed at the next line
}

func startMember(ctx context.Context, peer, work string, servers []string, name string, session time.Duration,
	environ ...string) (*member, error) {
	command, err := programOf(context.WithoutCancel(ctx), peer)
	if err != nil {
		return nil, err
	}
	command.Args = append(command.Args, "-measure", work, "-peer", peer, "-servers", strings.Join(servers, ","),
		"-name", name, "-session", session.String())
	command.Env = append(os.Environ(), environ...)
	m := &member{command: command, ended: make(chan struct{}), said: map[string]time.Time{}, news: make(chan struct{})}
	command.Stderr = &m.errors
	if m.input, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			word := lines.Text()
			m.mu.Lock()
			if _, again := m.said[word]; !again {
				m.said[word] = time.Now()
			}
			close(m.news)
			m.news = make(chan struct{})
			m.mu.Unlock()
		}
		_ = command.Wait() // how it ended is of no interest
		close(m.ended)
	}()
	return m, nil
}

// await waits until the member has said a word, and returns when it first did.
func (m *member) await(ctx context.Context, word string) (time.Time, error) {
	for {
		m.mu.Lock()
		at, ok := m.said[word]
		news := m.news
		m.mu.Unlock()
		if ok {
			return at, nil
		}
		select {
		case <-news:
		case <-m.ended:
			return at, fmt.Errorf("a member ended before it said %s: %s", word, strings.TrimSpace(m.errors.String()))
		case <-ctx.Done():
			return at, fmt.Errorf("a member does not say %s: %w", word, context.Cause(ctx))
		}
	}
}

func (m *member) release() { _, _ = io.WriteString(m.input, "\n") }

func (m *member) kill() {
	_ = m.command.Process.Kill()
	<-m.ended
}

func (m *member) end(ctx context.Context) error {
	select {
	case <-m.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// command returns the command of one measurement.
func (s *stores) command(ctx context.Context, peer, work string, servers []string) (*exec.Cmd, error) {
	command, err := programOf(ctx, peer)
	if err == nil {
		command.Args = append(command.Args, "-measure", work, "-peer", peer, "-servers", strings.Join(servers, ","))
	}
	return command, err
}

// programOf returns the command that measures a library.
func programOf(ctx context.Context, peer string) (*exec.Cmd, error) {
	switch peer {
	case curatorPeer:
		classpath, err := compiledCurator()
		return exec.CommandContext(ctx, "java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
			"-cp", classpath, "Compare"), err
	case kazooPeer:
		return exec.CommandContext(ctx, "/usr/bin/python3", filepath.Join(sources, "python", "compare.py")), nil
	}
	self, err := os.Executable()
	return exec.CommandContext(ctx, self), err
}

// sources is where the programs of other languages are, from the root of the repository.
const sources = "bench/compare"

// compiledCurator compiles java/Compare.java when it is first called, and returns its class path.
var compiledCurator = sync.OnceValues(func() (string, error) {
	var classpath []string
	for _, name := range strings.Fields("curator-recipes curator-framework curator-client guava zookeeper zookeeper-jute " +
		"jackson-databind jackson-core jackson-annotations slf4j-api slf4j-simple") {
		jar := "/usr/share/java/" + name + ".jar"
		if _, err := os.Stat(jar); err != nil {
			return "", err
		}
		classpath = append(classpath, jar)
	}
	dir := filepath.Join("bin", "compare-java")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	compiler, err := exec.LookPath("javac")
	if err != nil {
		compiler = "ecj"
	}
	joined := strings.Join(classpath, ":")
	out, err := exec.Command(compiler, "-nowarn", "-proc:none", "-source", "11", "-target", "11", "-cp", joined,
		"-d", dir, filepath.Join(sources, "java", "Compare.java")).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", compiler, err, out)
	}
	return joined + ":" + dir, nil
})
