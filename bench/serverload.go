package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var zxidLine = regexp.MustCompile(`Zxid: 0x([0-9a-f]+)`)

// newestZxid returns the highest zxid that a server reports.
func newestZxid(s settings) (newest int64, err error) {
	for _, server := range s.servers {
		text, err := askServer(server, "srvr")
		if err != nil {
			return 0, err
		}
		m := zxidLine.FindSubmatch(text)
		if m == nil {
			return 0, fmt.Errorf("%s does not answer srvr: is it in its 4lw.commands.whitelist?", server)
		}
		zxid, err := strconv.ParseInt(string(m[1]), 16, 64)
		if err != nil {
			return 0, err
		}
		newest = max(newest, zxid)
	}
	return newest, nil
}

// serverProcesses are the process ids of the servers on this machine. It is empty if they cannot be
// found: on systems other than Linux, if the servers run on other machines, or without permission.
type serverProcesses []int

// findServerProcesses finds the processes that listen on the servers' ports.
func findServerProcesses(servers []string) (pids serverProcesses) {
	sockets := map[string]bool{}
	for _, server := range servers {
		_, port, err := net.SplitHostPort(server)
		if err != nil {
			return nil
		}
		for _, inode := range listeningSockets(port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	seen := map[int]bool{}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !sockets[target] {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err == nil && !seen[pid] {
			seen[pid] = true
			pids = append(pids, pid)
		}
	}
	return pids
}

// listeningSockets returns the inodes of the sockets that listen on a port.
func listeningSockets(port string) (inodes []string) {
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil
	}
	const listening = "0A"
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == listening && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", number)) {
				inodes = append(inodes, f[9])
			}
		}
	}
	return inodes
}

// clockTick is the unit of times in /proc/PID/stat on Linux.
const clockTick = 10 * time.Millisecond

// used returns the processor time that the processes have used so far.
func (p serverProcesses) used() (total time.Duration) {
	for _, pid := range p {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := bytes.Cut(text, []byte(") ")) // behind the command's name, which may have spaces
		f := strings.Fields(string(rest))
		for _, field := range f[11:13] { // utime, stime
			n, _ := strconv.Atoi(field)
			total += time.Duration(n) * clockTick
		}
	}
	return total
}
