package lastgood

import (
	"bytes"
	"os"
	"path/filepath"
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

func TestAContentThatIsTooLargeIsNotWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	head, err := kind.encode(Content{Path: "/a"})
	require.NoError(t, err)
	largest := make([]byte, kind.MaxBytes-len(head))
	require.NoError(t, kind.Write(name, Content{Path: "/a", Data: largest}))
	require.ErrorContains(t, kind.Write(name, Content{Path: "/a", Data: append(largest, 'x')}), "of at most")
	c, err := kind.Read(name, "/a")
	require.NoError(t, err)
	require.Equal(t, largest, c.Data, "the former file stays")
	files, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// TestLeftoversAreDeleted: processes have crashed while they wrote the file. Another process writes
// it now, and other files with names like theirs stay.
func TestLeftoversAreDeleted(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	require.NoError(t, kind.Write(name, Content{Path: "/a"}))
	for _, other := range []string{"file.123.tmp", "file.456.tmp", "file.789.tmp", "file.x.tmp", "file.2.1.tmp",
		"files.1.tmp", "file.1"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, other), nil, 0o600))
		if other != "file.789.tmp" {
			old := time.Now().Add(-2 * time.Hour)
			require.NoError(t, os.Chtimes(filepath.Join(dir, other), old, old))
		}
	}
	_, err := kind.Read(name, "/a")
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	require.Equal(t, []string{"file", "file.1", "file.2.1.tmp", "file.789.tmp", "file.x.tmp", "files.1.tmp"}, left)
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
