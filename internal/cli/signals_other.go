//go:build !unix

package cli

import "os"

var noticeSignals []os.Signal

func errorStream() *os.File { return os.Stderr }
