package framework_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/descriptors"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestAClientNeedsOneDescriptor, its connection: all clients of a process share that of their
// alarms.
func TestAClientNeedsOneDescriptor(t *testing.T) {
	address, err := zktest.Start(t).ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	for range 50 {
		c, err := framework.Connect(t.Context(),
			framework.Config{Servers: []string{address}, SessionTimeout: 10 * time.Second})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close(t.Context())) })
		require.Equal(t, 1, descriptors.Alarms())
	}
}
