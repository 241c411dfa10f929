//go:build !unix

package child

import "os"

func (p *process) prepare() (giveBack func()) { return func() {} }

func (p *process) code() int { return p.cmd.ProcessState.ExitCode() }

// signal kills: elsewhere a process cannot be told more.
func (p *process) signal(os.Signal) { p.kill() }

func (p *process) terminate() { p.kill() }

func (p *process) kill() { _ = p.cmd.Process.Kill() }

func (p *process) resume() {}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}
