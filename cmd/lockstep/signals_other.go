//go:build !unix

package main

import "os"

var noticeSignals []os.Signal

func errorStream() *os.File { return os.Stderr }
