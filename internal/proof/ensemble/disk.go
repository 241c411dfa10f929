package ensemble

import (
	"errors"
	"os"
	"path/filepath"
)

var errNoDisk = errors.New("ensemble: started without Config.DiskMB")

// FillDisk fills the disk with server i's transaction log. Then the server serves no client until
// the disk is freed and the server is restarted. It needs Config.DiskMB.
func (e *Ensemble) FillDisk(i int) error { return e.onDisk(i, fillDisk) }

// FreeDisk undoes FillDisk. The caller must kill the server before and restart it afterwards.
// FreeDisk removes a log whose header did not fit on the disk, as an operator must: ZooKeeper does
// not start with such a log (ZOOKEEPER-1621).
func (e *Ensemble) FreeDisk(i int) error {
	return e.onDisk(i, func(dir string) error {
		return errors.Join(resizeDisk(dir, int64(e.config.DiskMB)<<20), removeTruncatedLogs(dir))
	})
}

// logHeader is the smallest size of a transaction log.
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

// mountDisks mounts the disks of all servers. Only the thread that starts the servers sees them.
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
