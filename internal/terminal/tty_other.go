//go:build !unix

package terminal

import "os"

func isTerminal(*os.File) bool { return false }
