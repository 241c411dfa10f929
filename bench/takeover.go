package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/election"
)

// takeover is W5: the time from the leader's end to the other's lead.
func takeover(s settings) error {
	if s.how != "kill" && s.how != "close" {
		return fmt.Errorf("-how %q: want kill or close", s.how)
	}
	n := or(s.n, 1)
	laps := make([]time.Duration, 0, n)
	var total time.Duration
	for range n {
		d, err := takeoverOnce(s)
		if err != nil {
			return err
		}
		laps, total = append(laps, d), total+d
	}
	r := newResult(s, "lockstep", map[string]any{"how": s.how, "session": s.session.Seconds()}, n, total, laps)
	r.OpsPerS = nil
	return r.print()
}

func takeoverOnce(s settings) (time.Duration, error) {
	path := fmt.Sprintf("%s/w5-%d", root, rand.Int64())
	a, err := startProcess(s, path)
	if err != nil {
		return 0, err
	}
	defer a.end()
	if _, err := a.await("LEADER"); err != nil {
		return 0, err
	}
	b, err := startProcess(s, path)
	if err != nil {
		return 0, err
	}
	defer b.end()
	if _, err := b.await("UP"); err != nil {
		return 0, err
	}
	time.Sleep(time.Second + rand.N(time.Second))
	gone := time.Now()
	if s.how == "kill" {
		a.end()
	} else if gone, err = a.resign(); err != nil {
		return 0, err
	}
	led, err := b.await("LEADER")
	if err != nil {
		return 0, err
	}
	_, err = b.resign()
	return led.Sub(gone), err
}

// process is one member of the election.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	tell  interface{ Close() error }
}

func startProcess(s settings, path string) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, "-member", "-w", path, "-zk", strings.Join(s.servers, ","), "-session", s.session.String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd, bufio.NewScanner(out), in}, cmd.Start()
}

// await reads until the member says a word, and returns its time stamp.
func (p *process) await(word string) (time.Time, error) {
	for p.lines.Scan() {
		if said, at, _ := strings.Cut(p.lines.Text(), " "); said == word {
			ns, err := strconv.ParseInt(at, 10, 64)
			return time.Unix(0, ns), err
		}
	}
	return time.Time{}, fmt.Errorf("a member never said %s", word)
}

// resign ends the member's standard input, on which it resigns.
func (p *process) resign() (time.Time, error) {
	if err := p.tell.Close(); err != nil {
		return time.Time{}, err
	}
	return p.await("RESIGN")
}

func (p *process) end() {
	_ = p.cmd.Process.Kill() // it may have ended already
	_ = p.cmd.Wait()
}

// member campaigns, and resigns when its standard input ends.
func member(s settings) error {
	ctx := context.Background()
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	say("UP")
	term, err := election.New(c, s.workload).Campaign(ctx)
	if err != nil {
		return err
	}
	say("LEADER")
	bufio.NewScanner(os.Stdin).Scan()
	say("RESIGN")
	return term.Resign(ctx)
}

func say(word string) { fmt.Println(word, time.Now().UnixNano()) }
