package cli

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/queue"
)

// TestManualHasAllExitCodes: the manual's table has each constant of this package except
// ExitSignal, to which the number of a signal is added, and no other code.
func TestManualHasAllExitCodes(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "exitcodes.go", nil, 0)
	require.NoError(t, err)
	var declared []int
	for _, decl := range file.Decls {
		constants, ok := decl.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			value := spec.(*ast.ValueSpec)
			if name := value.Names[0].Name; strings.HasPrefix(name, "Exit") && name != "ExitSignal" {
				code, err := strconv.Atoi(value.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err, name)
				declared = append(declared, code)
			}
		}
	}
	var described []int
	for _, line := range regexp.MustCompile(`(?m)^ {2,4}(\d+)  \S`).FindAllStringSubmatch(ExitCodeHelp(), -1) {
		code, err := strconv.Atoi(line[1])
		require.NoError(t, err)
		described = append(described, code)
	}
	require.IsIncreasing(t, described)
	require.Equal(t, slices.Compact(slices.Sorted(slices.Values(declared))), described)
	for _, line := range strings.Split(ExitCodeHelp(), "\n") {
		require.LessOrEqual(t, len(line), 110, line)
	}
}

// TestEachErrorHasItsOwnCode: no entry hides a later one, and all have codes of the manual.
func TestEachErrorHasItsOwnCode(t *testing.T) {
	for _, entry := range exitCodes {
		var coded *ExitError
		require.ErrorAs(t, WithCode(fmt.Errorf("at /a: %w", entry.Reason)), &coded, entry.Reason)
		require.Equal(t, entry.Code, coded.Code, entry.Reason)
		require.Contains(t, coded.Hint, entry.Hint, entry.Reason)
		require.ErrorIs(t, coded, entry.Reason)
		require.True(t, slices.ContainsFunc(exitMeanings, func(m exitMeaning) bool {
			return m.code == entry.Code
		}), entry.Reason)
	}
}

// TestFirstCodeCounts for an error with several reasons, and an error has a code only once.
func TestFirstCodeCounts(t *testing.T) {
	code := func(err error) int {
		var coded *ExitError
		require.ErrorAs(t, WithCode(err), &coded)
		return coded.Code
	}
	require.Equal(t, ExitLost, code(errors.Join(framework.ErrNoAuth, procguard.ErrHoldLost)), "the command was ended")
	require.Equal(t, ExitInternal, code(errors.New("any")))
	require.Equal(t, ExitUsage, code(fmt.Errorf("more: %w", UsageError("%w", queue.ErrEmpty))))
	require.NoError(t, WithCode(nil))

	hinted := WithHint(fmt.Errorf("put: %w", queue.ErrFull), queue.ErrFull, "take some")
	require.Equal(t, ExitNotObtained, code(hinted))
	var coded *ExitError
	require.ErrorAs(t, hinted, &coded)
	require.Equal(t, "take some", coded.Hint)
	require.Equal(t, queue.ErrEmpty, WithHint(queue.ErrEmpty, queue.ErrFull, "take some"))
}

// TestHintsOfCommands: each wins over the hint of its error, with the same code, and only for its
// command.
func TestHintsOfCommands(t *testing.T) {
	for _, h := range hintsOfCommands {
		var own, other *ExitError
		require.ErrorAs(t, withHintOf(h.command, fmt.Errorf("at /a: %w", h.reason)), &own, h.command)
		require.ErrorAs(t, withHintOf("other", fmt.Errorf("at /a: %w", h.reason)), &other, h.command)
		require.Equal(t, h.hint, own.Hint)
		require.NotEqual(t, h.hint, other.Hint)
		require.Equal(t, other.Code, own.Code)
	}
	hinted := WithHint(framework.ErrNotFound, framework.ErrNotFound, "look there")
	require.Equal(t, hinted, withHintOf("jobs", hinted), "a hint of the call itself stays")
}
