package apache

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/proof/conformance"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

func TestMain(m *testing.M) {
	ensemble.Announce()
	goleak.VerifyTestMain(m)
}

func TestEnsembleConforms(t *testing.T) {
	conformance.Run(t, conformance.Target{Servers: ensemble.Shared(t)})
}
