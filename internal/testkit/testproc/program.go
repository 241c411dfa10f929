package testproc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// RequireUsage runs the program with each line of arguments. The program must refuse all of them:
// it must end with exit code 64 and print, on standard error, the error and how to get help. With
// --help it must end with exit code 0 and describe the flag.
func RequireUsage(t *testing.T, program, flag string, refused ...string) {
	t.Helper()
	for _, line := range refused {
		out, errs, code := Run(t, strings.Fields(line)...)
		require.Equal(t, 64, code, line)
		require.Empty(t, out, line)
		require.Regexp(t, "^"+program+": .+\n"+program+": see --help\n$", errs, line)
	}
	out, _, code := Run(t, "--help")
	require.Equal(t, 0, code)
	require.Contains(t, out, flag)
}

// RequireUnreachable runs the program with a server that does not exist. The program must end with
// exit code 1 and name the server on standard error, which is returned.
func RequireUnreachable(t *testing.T) (errs string) {
	t.Helper()
	out, errs, code := Run(t, "--zk", "127.0.0.1:1", "--json")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, "127.0.0.1:1")
	return errs
}
