//go:build !unix

package procguard

import "os"

func (p *process) prepareGroup() (takeTerminalBack func()) { return func() {} }

func (p *process) exitCode() int { return p.cmd.ProcessState.ExitCode() }

// signalGroup kills the process, whatever the signal is: these systems have no other signals.
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
