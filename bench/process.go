package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// process is a member that a workload has started. Both sides send lines of words.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
	tell  interface{ Close() error }
}

// startProcess starts a member with the settings of this process.
func startProcess(s settings, path string) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, "-w", s.workload, "-member", path, "-zk", strings.Join(s.servers, ","),
		"-session", s.session.String(), "-c", strconv.Itoa(s.c), "-t", s.span.String(), "-warmup", s.warmup.String(),
		"-release", s.release, "-slice", s.slice.String(), "-trace="+strconv.FormatBool(s.sent != nil),
		"-watchdog="+strconv.FormatBool(s.watchdog))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd, bufio.NewReader(out), in}, cmd.Start()
}

// said reads until the member sends a word, and returns its value.
func (p *process) said(word string) (string, error) {
	for {
		line, err := p.lines.ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("a member ended before it sent %s: %w", word, err)
		}
		if first, rest, _ := strings.Cut(strings.TrimSpace(line), " "); first == word {
			return rest, nil
		}
	}
}

// await waits for a word, and returns its time stamp.
func (p *process) await(word string) (time.Time, error) {
	at, err := p.said(word)
	if err != nil {
		return time.Time{}, err
	}
	ns, err := strconv.ParseInt(at, 10, 64)
	return time.Unix(0, ns), err
}

// hear waits for a word, and decodes the JSON that follows.
func (p *process) hear(word string, into any) error {
	text, err := p.said(word)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// resign closes the member's standard input, so that it resigns.
func (p *process) resign() (time.Time, error) {
	if err := p.tell.Close(); err != nil {
		return time.Time{}, err
	}
	return p.await("RESIGN")
}

func (p *process) end() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	_ = p.cmd.Wait()
}

// say sends a word with a time stamp.
func say(word string) { fmt.Println(word, time.Now().UnixNano()) }
