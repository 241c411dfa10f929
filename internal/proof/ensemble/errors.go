package ensemble

import "errors"

// ErrNotInstalled is returned when Java or the ZooKeeper jars are not found on
// this machine. The error that wraps it says what to install.
var ErrNotInstalled = errors.New("ZooKeeper is not installed")

// ErrNotServing is returned if not all servers serve, or none leads, within the
// allowed time.
var ErrNotServing = errors.New("the ensemble does not serve")
