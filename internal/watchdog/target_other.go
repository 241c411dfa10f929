//go:build !unix

package watchdog

func identify(pid int) identity { return identity{pid: int32(pid)} }
