package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// memory returns a process's resident memory, and the part of it that has no file (anonymous
// memory), in bytes.
func memory(pid int) (rss, anon float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS":
			rss = kilobytes(value)
		case "RssAnon":
			anon = kilobytes(value)
		}
	}
	return rss, anon, nil
}

func kilobytes(value string) float64 {
	n, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64) // the kernel's own words
	return n * 1024
}

// descriptors returns how many descriptors a process has open.
func descriptors(pid int) (float64, error) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return float64(len(open)), err
}

// processor returns the processor time that a process has used, in seconds.
func processor(pid int) (float64, error) {
	const ticks = 100 // in a second: Linux reports times in this unit
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if err != nil || len(f) < 13 {
		return 0, errors.Join(err, errors.ErrUnsupported)
	}
	user, err := strconv.ParseFloat(f[11], 64)
	system, err2 := strconv.ParseFloat(f[12], 64)
	return (user + system) / ticks, errors.Join(err, err2)
}

// countProcesses returns how many processes run a program.
func countProcesses(program string) float64 {
	links, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is good
	n := 0
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == program {
			n++
		}
	}
	return float64(n)
}

var serverNumber = regexp.MustCompile(`/(\d+)\.cfg`)

// servers returns the process ids of the ensemble's servers, by the servers' numbers.
func servers() map[string]int {
	pids := map[string]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, file := range stats {
		b, err := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); err != nil || len(f) < 2 || f[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		dir := filepath.Dir(file)
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may have ended
		if m := serverNumber.FindSubmatch(line); m != nil {
			pids[string(m[1])], _ = strconv.Atoi(filepath.Base(dir)) // digits
		}
	}
	return pids
}
