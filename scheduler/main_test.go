package scheduler

import (
	"testing"

	_ "time/tzdata" // the tests' zones, wherever they run

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
