package ensemble

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMissingJavaIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	err := Installed()
	require.ErrorIs(t, err, ErrNotInstalled)
	require.ErrorContains(t, err, "apt-get install default-jre-headless")
}

func TestMissingJarsAreNamed(t *testing.T) {
	t.Setenv("ZOOKEEPER_HOME", t.TempDir())
	err := Installed()
	require.ErrorIs(t, err, ErrNotInstalled)
	require.ErrorContains(t, err, "ZOOKEEPER_HOME")

	_, err = Start(t.Context(), Config{})
	require.ErrorIs(t, err, ErrNotInstalled)
}
