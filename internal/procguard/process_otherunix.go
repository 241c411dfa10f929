//go:build unix && !linux

package procguard

import "syscall"

func setParentDeathSignal(*syscall.SysProcAttr) {}

func (p *process) resumeStopped() {}
