//go:build !linux

package ensemble

import "syscall"

// childAttr returns nil: only Linux kills a child together with its parent.
func childAttr() *syscall.SysProcAttr { return nil }
