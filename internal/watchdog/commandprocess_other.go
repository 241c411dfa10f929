//go:build !unix

package watchdog

func identifyProcess(pid int) (processIdentity, error) { return processIdentity{pid: int32(pid)}, nil }
