//go:build unix

package watchdog

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is the watchdog itself when it is asked to be one.
func TestMain(m *testing.M) {
	if Asked() {
		os.Exit(Main())
	}
	goleak.VerifyTestMain(m)
}
