package config_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
)

// stored writes a value through a Value with a file, and returns the file.
func (w *world) stored(name string, rate int) []byte {
	require.NoError(w.t, w.limits(w.b).Set(w.t.Context(), limits{Rate: rate}))
	_, err := w.limits(w.a, config.WithFile[limits](name)).Load(w.t.Context())
	require.NoError(w.t, err)
	b, err := os.ReadFile(name)
	require.NoError(w.t, err)
	return b
}

func TestAProgramStartsFromItsFileWhileTheServersAreDown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		name := filepath.Join(t.TempDir(), "limits")
		w.stored(name, 5)
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		version := w.version()

		w.b.Link.Cut()
		v := w.limits(w.b, config.WithFile[limits](name), config.WithDefault(limits{Rate: 1}))
		require.Equal(t, limits{Rate: 5}, v.Get())
		require.Equal(t, config.FromFile, v.Current().Source)
		require.Equal(t, version, v.Current().Version)
		w.run(v)
		require.NoError(t, w.limits(w.a).Set(t.Context(), limits{Rate: 6}))
		w.b.Link.Heal()
		time.Sleep(2 * timeout)
		require.Equal(t, 6, v.Get().Rate)
		require.Equal(t, 6, w.limits(w.a, config.WithFile[limits](name)).Get().Rate)
	})
}

func TestARefusedValueIsNotStored(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		name := filepath.Join(t.TempDir(), "limits")
		w.stored(name, 5)
		w.run(w.limits(w.a, config.WithFile[limits](name)))
		w.write(`{"rate":-1}`)
		require.Equal(t, 5, w.limits(w.b, config.WithFile[limits](name)).Get().Rate)
		require.NoError(t, w.b.Delete(t.Context(), path, framework.AnyVersion))
		synctest.Wait()
		require.Equal(t, 5, w.limits(w.b, config.WithFile[limits](name)).Get().Rate)
	})
}

func TestAFileIsReadWithValidation(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		name := filepath.Join(t.TempDir(), "limits")
		w.stored(name, 5)
		strict := config.WithValidate(func(limits) error { return errors.New("this release wants more") })
		require.Equal(t, 1, w.limits(w.b, config.WithFile[limits](name), config.WithDefault(limits{Rate: 1}),
			strict).Get().Rate)
	})
}

func TestAFileThatIsDamagedOrOfAnotherPathIsIgnored(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		dir := t.TempDir()
		name := filepath.Join(dir, "limits")
		good := w.stored(name, 5)
		value := func() int {
			return w.limits(w.b, config.WithFile[limits](name), config.WithDefault(limits{Rate: 1})).Get().Rate
		}
		for n := range good {
			require.NoError(t, os.WriteFile(name, good[:n], 0o600))
			require.Equal(t, 1, value(), "half written: %d bytes", n)
		}
		for i := range good {
			damaged := bytes.Clone(good)
			damaged[i] ^= 1
			require.NoError(t, os.WriteFile(name, damaged, 0o600))
			require.Equal(t, 1, value(), "byte %d", i)
		}
		require.NoError(t, os.WriteFile(name, good, 0o600))
		require.Equal(t, 5, value())

		other := config.New(w.b.Client, "/app/other", codec.JSON[limits](), config.WithFile[limits](name))
		require.Zero(t, other.Get().Rate)
		below := w.Member(t, "below", framework.Config{SessionTimeout: timeout, Root: "/root"})
		require.Zero(t, w.limits(below, config.WithFile[limits](name)).Get().Rate)
		require.NoError(t, os.WriteFile(name, make([]byte, 3<<20), 0o600))
		require.Equal(t, 1, value())
		require.Zero(t, w.limits(w.b, config.WithFile[limits](dir)).Get().Rate, "a directory")
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		require.Len(t, left, 1, "no temporary file is left")
	})
}

func TestAFileThatCannotBeWrittenDoesNotStopAValue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a, config.WithFile[limits](filepath.Join(t.TempDir(), "missing", "limits")))
		w.run(v)
		w.write(`{"rate":5}`)
		require.Equal(t, 5, v.Get().Rate)
	})
}
