// Package descriptors counts the open files of the test's process, on Linux.
package descriptors

import (
	"os"
	"path/filepath"
)

// Alarms returns how many descriptors this process has for alarms (timerfd).
func Alarms() (n int) {
	open, _ := filepath.Glob("/proc/self/fd/*") // the pattern is valid
	for _, fd := range open {
		if file, err := os.Readlink(fd); err == nil && file == "anon_inode:[timerfd]" {
			n++
		}
	}
	return n
}
