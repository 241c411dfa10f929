package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) {
	if testproc.IsProgram() {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// TestALeaderTakesTwentyLines counts the lines of main.
func TestALeaderTakesTwentyLines(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "main.go", nil, 0)
	require.NoError(t, err)
	lines := 0
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "main" {
			lines = files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
		}
	}
	require.Positive(t, lines)
	require.LessOrEqual(t, lines, 20)
}

// TestLeavesNothingAtSIGTERM: the next leader waits for no session timeout.
func TestLeavesNothingAtSIGTERM(t *testing.T) {
	zk := zktest.Start(t)
	address, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	program := testproc.Command()
	program.Env = append(program.Env, "LOCKSTEP_SERVERS="+address, "HEALTH_ADDRESS=127.0.0.1:0")
	testproc.Terminate(t, program, "billing, with token")
	require.True(t, program.ProcessState.Success())
	require.Empty(t, zk.Sessions())
}

func TestWithoutServers(t *testing.T) {
	t.Setenv("LOCKSTEP_SERVERS", "")
	_, errs, code := testproc.Run(t)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "LOCKSTEP_SERVERS")
}
