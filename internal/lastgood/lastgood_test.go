package lastgood

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var kind = Kind{Name: "test", MaxBytes: 1 << 20}

func TestADamagedOrForeignFileIsRefused(t *testing.T) {
	good, err := kind.encode(Content{Path: "/a", Data: []byte("value")})
	require.NoError(t, err)
	c, err := kind.Decode(good, "/a")
	require.NoError(t, err)
	require.Equal(t, "value", string(c.Data))
	_, err = kind.Decode(good, "/b")
	require.ErrorIs(t, err, ErrBadFile, "another path")
	_, err = Kind{Name: "other"}.Decode(good, "/a")
	require.ErrorIs(t, err, ErrBadFile, "another kind")
	for n := range good {
		_, err = kind.Decode(good[:n], "/a")
		require.ErrorIs(t, err, ErrBadFile, "half written: %d bytes", n)
		damaged := bytes.Clone(good)
		damaged[n] ^= 1
		_, err = kind.Decode(damaged, "/a")
		require.ErrorIs(t, err, ErrBadFile, "byte %d", n)
	}
}

func FuzzDecodeFile(f *testing.F) {
	good, err := kind.encode(Content{Path: "/a", Version: 7, Written: time.Unix(1, 0).UTC(), Data: []byte("x\ny")})
	require.NoError(f, err)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte(kind.magic() + checksum([]byte("{}\n")) + "\n{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := kind.Decode(b, "/a")
		if err != nil {
			require.ErrorIs(t, err, ErrBadFile)
			return
		}
		again, err := kind.encode(c)
		if err != nil {
			return // JSON has no form for this time
		}
		read, err := kind.Decode(again, "/a")
		require.NoError(t, err)
		require.Equal(t, c.Version, read.Version)
		require.Equal(t, string(c.Data), string(read.Data))
	})
}
