package main

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// newAccountStore opens an account store in a new file. It contains the account with a balance of
// 100.
func newAccountStore(t *testing.T, fenced bool) (l *accountStore, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "accounts.db")
	return newAccountStoreIn(t, file, fenced), file
}

func newAccountStoreIn(t *testing.T, file string, fenced bool) *accountStore {
	t.Helper()
	l, err := openAccountStore(file, fenced)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.close()) })
	require.NoError(t, l.create(t.Context(), accountID, opening))
	return l
}

func TestFileNameWithSpecialCharacters(t *testing.T) {
	file := filepath.Join(t.TempDir(), "50% of #1, really?.db")
	newAccountStoreIn(t, file, true)
	require.FileExists(t, file)
}

func requireRow(t *testing.T, l *accountStore, balance, token int64) {
	t.Helper()
	gotBalance, gotToken, err := l.read(t.Context(), accountID)
	require.NoError(t, err)
	require.Equal(t, balance, gotBalance)
	require.Equal(t, token, gotToken)
}

func TestALowerTokenIsRefused(t *testing.T) {
	l, _ := newAccountStore(t, true)
	require.NoError(t, l.write(t.Context(), accountID, 110, 23))
	require.NoError(t, l.write(t.Context(), accountID, 120, 23), "a holder may write twice")
	err := l.write(t.Context(), accountID, 999, 17)
	require.ErrorIs(t, err, errRefused)
	require.EqualError(t, err, "refused: token 17 is older than 23")
	requireRow(t, l, 120, 23)
	require.NoError(t, l.write(t.Context(), accountID, 130, 1<<62), "tokens have 64 bits")
	requireRow(t, l, 130, 1<<62)
}

func TestLowerTokenWritesWithoutFence(t *testing.T) {
	l, _ := newAccountStore(t, false)
	require.NoError(t, l.write(t.Context(), accountID, 110, 23))
	require.NoError(t, l.write(t.Context(), accountID, 999, 17))
	requireRow(t, l, 999, 17)
}

func TestMissingAccountIsNotRefused(t *testing.T) {
	l, _ := newAccountStore(t, true)
	err := l.write(t.Context(), "43", 1, 1)
	require.ErrorIs(t, err, sql.ErrNoRows)
	require.NotErrorIs(t, err, errRefused)
	require.ErrorContains(t, err, "account 43")
}
