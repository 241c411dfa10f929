package ensemble

import (
	"fmt"
	"os"
)

// Kill kills server i with SIGKILL, and returns when it has ended. Its data remain.
func (e *Ensemble) Kill(i int) error {
	if err := e.check(i); err != nil {
		return err
	}
	return e.servers[i].kill()
}

// Restart starts a killed server again, with its data and its address. It does not wait until
// the server serves; see Await.
func (e *Ensemble) Restart(i int) error {
	if err := e.check(i); err != nil {
		return err
	}
	return e.servers[i].start()
}

// Freeze stops server i with SIGSTOP, as a long pause does: its connections stay open and
// it does not answer. It works on Unix only.
func (e *Ensemble) Freeze(i int) error {
	if err := e.check(i); err != nil {
		return err
	}
	return e.servers[i].signal(stopProcess)
}

// Thaw continues a frozen server.
func (e *Ensemble) Thaw(i int) error {
	if err := e.check(i); err != nil {
		return err
	}
	return e.servers[i].signal(continueProcess)
}

// PIDs returns the process ids of the servers that were not killed, to measure what they use.
func (e *Ensemble) PIDs() (pids []int) {
	for _, s := range e.servers {
		_ = s.signal(func(p *os.Process) error { // a killed server has none
			pids = append(pids, p.Pid)
			return nil
		})
	}
	return pids
}

func (e *Ensemble) check(i int) error {
	if i < 0 || i >= len(e.servers) {
		return fmt.Errorf("ensemble: no server %d, they are numbered 0 to %d: %w", i, len(e.servers)-1, os.ErrInvalid)
	}
	return nil
}
