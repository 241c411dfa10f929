package apache

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/conformance"
	"github.com/lockstep-go/lockstep/internal/ensemble"
)

func TestMain(m *testing.M) {
	ensemble.Announce()
	goleak.VerifyTestMain(m)
}

func TestEnsembleConforms(t *testing.T) {
	conformance.Run(t, conformance.Target{Servers: ensemble.Shared(t)})
}
