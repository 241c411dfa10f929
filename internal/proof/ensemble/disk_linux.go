package ensemble

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ownMounts gives this thread a mount namespace of its own. Only this thread and its children see
// the mounts, which end with them.
func ownMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("ensemble: mounts of its own (DiskMB needs root): %w", err)
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("ensemble: private mounts: %w", err)
	}
	return nil
}

func mountDisk(dir string, size int64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("ensemble: disk: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		return fmt.Errorf("ensemble: mount %s: %w", dir, err)
	}
	return nil
}

// fillDisk shrinks the disk to the size of its files. That is faster than writing a large file, and
// takes no memory.
func fillDisk(dir string) error {
	for {
		var now unix.Statfs_t
		if err := unix.Statfs(dir, &now); err != nil {
			return fmt.Errorf("ensemble: disk %s: %w", dir, err)
		}
		used := int64(now.Blocks-now.Bfree) * now.Bsize
		err := resizeDisk(dir, max(used, now.Bsize)) // 0 would be no limit
		if !errors.Is(err, unix.EINVAL) {            // it has grown in between
			return err
		}
	}
}

func resizeDisk(dir string, size int64) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", size)); err != nil {
		return fmt.Errorf("ensemble: resize %s: %w", dir, err)
	}
	return nil
}
