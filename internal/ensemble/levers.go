package ensemble

import (
	"fmt"
	"os"
)

// Kill ends server i as kill -9 does and returns when it has ended. Its data stay.
func (e *Ensemble) Kill(i int) error {
	if err := e.check(i); err != nil {
		return err
	}
	return e.servers[i].kill()
}

// Restart starts a killed server again on its data and address. It does not wait; see
// Await.
func (e *Ensemble) Restart(i int) error {
	if err := e.check(i); err != nil {
		return err
	}
	return e.servers[i].start()
}

// Freeze stops server i as a long pause does (SIGSTOP): its connections stay open and
// nothing answers. Unix only.
func (e *Ensemble) Freeze(i int) error {
	if err := e.check(i); err != nil {
		return err
	}
	return e.servers[i].signal(stopProcess)
}

// Thaw lets a frozen server go on.
func (e *Ensemble) Thaw(i int) error {
	if err := e.check(i); err != nil {
		return err
	}
	return e.servers[i].signal(continueProcess)
}

func (e *Ensemble) check(i int) error {
	if i < 0 || i >= len(e.servers) {
		return fmt.Errorf("ensemble: no server %d, they are numbered 0 to %d: %w", i, len(e.servers)-1, os.ErrInvalid)
	}
	return nil
}
