//go:build !unix

package procguard

import "os"

func (p *process) prepareGroup() (giveBack func()) { return func() {} }

func (p *process) exitCode() int { return p.cmd.ProcessState.ExitCode() }

// signalGroup kills the process: without Unix there are no other signals.
func (p *process) signalGroup(os.Signal) { p.killGroup() }

func (p *process) terminateGroup() { p.killGroup() }

func (p *process) killGroup() { _ = p.cmd.Process.Kill() }

func (p *process) resumeStopped() {}

func (p *process) isGroupAlive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}
