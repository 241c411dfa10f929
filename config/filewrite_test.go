package config

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestOlderValueIsNotWrittenLast: two loops that have taken values one after the other may write
// them in the other order.
func TestOlderValueIsNotWrittenLast(t *testing.T) {
	name := filepath.Join(t.TempDir(), "value")
	client := zktest.Start(t).Member(t, "a", framework.Config{}).Client
	v := New(client, "/app/value", codec.Bytes(), WithFile[[]byte](name))
	v.writeFile(&Snapshot[[]byte]{Version: 2}, []byte("new"))
	v.writeFile(&Snapshot[[]byte]{Version: 1}, []byte("old"))
	require.Equal(t, "new", string(New(client, "/app/value", codec.Bytes(), WithFile[[]byte](name)).Get()))
}
