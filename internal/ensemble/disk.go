package ensemble

import (
	"errors"
	"os"
	"path/filepath"
)

var errNoDisk = errors.New("ensemble: started without Config.DiskMB")

// FillDisk leaves no free byte where server i keeps its transaction log. ZooKeeper serves no client then, until
// the disk is freed and the server restarted. It needs Config.DiskMB.
func (e *Ensemble) FillDisk(i int) error { return e.onDisk(i, fillDisk) }

// FreeDisk ends FillDisk. The server is to be killed before and restarted after. A log that was begun when there was
// no room for its header is removed, as an operator has to: ZooKeeper does not start beside one (ZOOKEEPER-1621).
func (e *Ensemble) FreeDisk(i int) error {
	return e.onDisk(i, func(dir string) error {
		return errors.Join(resizeDisk(dir, int64(e.config.DiskMB)<<20), removeTruncatedLogs(dir))
	})
}

// logHeader is the least size of a transaction log.
const logHeader = 16

func removeTruncatedLogs(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "version-2", "log.*"))
	for _, log := range logs {
		info, serr := os.Stat(log)
		if serr == nil && info.Size() < logHeader {
			serr = os.Remove(log)
		}
		err = errors.Join(err, serr)
	}
	return err
}

func (e *Ensemble) onDisk(i int, f func(dir string) error) error {
	if err := e.check(i); err != nil {
		return err
	}
	if e.config.DiskMB == 0 {
		return errNoDisk
	}
	return e.launcher.do(func() error { return f(e.layout.disk(i)) })
}

// mountDisks makes the disks of all servers, for the thread that starts them alone.
func (e *Ensemble) mountDisks() error {
	if e.config.DiskMB == 0 {
		return nil
	}
	return e.launcher.do(func() error {
		if err := ownMounts(); err != nil {
			return err
		}
		for i := range e.servers {
			if err := mountDisk(e.layout.disk(i), int64(e.config.DiskMB)<<20); err != nil {
				return err
			}
		}
		return nil
	})
}
