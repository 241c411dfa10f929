//go:build !linux

package ensemble

import "syscall"

// childAttr asks for nothing: only Linux kills a child together with its parent.
func childAttr() *syscall.SysProcAttr { return nil }
