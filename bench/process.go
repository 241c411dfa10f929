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

// process is a process that a workload has started. It writes lines that begin with a word, as the
// kind of the message.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
	stdin interface{ Close() error }
}

// startProcess starts a process with the settings of this one.
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

// readWord reads lines until one begins with a word, and returns the rest of that line.
func (p *process) readWord(word string) (string, error) {
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

// readTime waits for a word, and returns its time stamp.
func (p *process) readTime(word string) (time.Time, error) {
	at, err := p.readWord(word)
	if err != nil {
		return time.Time{}, err
	}
	ns, err := strconv.ParseInt(at, 10, 64)
	return time.Unix(0, ns), err
}

// readJSON waits for a word, and decodes the JSON that follows.
func (p *process) readJSON(word string, into any) error {
	text, err := p.readWord(word)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// resign closes the process's standard input, so that it resigns.
func (p *process) resign() (time.Time, error) {
	if err := p.stdin.Close(); err != nil {
		return time.Time{}, err
	}
	return p.readTime("RESIGN")
}

func (p *process) end() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	_ = p.cmd.Wait()
}

// printTime prints a word with a time stamp.
func printTime(word string) { fmt.Println(word, time.Now().UnixNano()) }
