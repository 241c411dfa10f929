//go:build unix

package faults

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestWatchdogOverTLS ends holders' processes whose sessions can be closed only over TLS with a
// client certificate.
func TestWatchdogOverTLS(t *testing.T) {
	s := newTLSServer(t)
	s.exportCertificates(t)
	t.Run("dead processes", func(t *testing.T) {
		for name, end := range map[string]func(*watchedProcess){
			"kill": (*watchedProcess).kill,
			"exit": func(holder *watchedProcess) { holder.order("exit") },
		} {
			t.Run(name, func(t *testing.T) {
				holder := startWatched(t, s.testEnv, longTimeout, s.SecureAddr(0))
				next := holder.startWaiter()
				began := time.Now()
				end(holder)
				holder.awaitTakeover(next, soonerThanTimeout, began)
				holder.awaitProcessEnd(holder.watchdogPID)
			})
		}
	})
	t.Run("commands", func(t *testing.T) {
		holder := startWatched(t, s.testEnv, longTimeout, s.SecureAddr(0))
		pids := holder.startCommand()
		next := holder.startWaiter()
		began := time.Now()
		holder.kill()
		holder.awaitTakeover(next, soonerThanTimeout, began)
		holder.requireDead(pids)
	})
}

// exportCertificates sets the environment variables that give child processes the right
// certificates.
func (s *tlsServer) exportCertificates(t *testing.T) {
	t.Helper()
	cert, key, err := s.authority.Sign("client")
	require.NoError(t, err)
	dir := t.TempDir()
	for variable, pem := range map[string][]byte{
		framework.EnvTLSCA: s.authority.PEM(), framework.EnvTLSCert: cert, framework.EnvTLSKey: key,
	} {
		file := filepath.Join(dir, variable)
		err = errors.Join(err, os.WriteFile(file, pem, 0o600))
		t.Setenv(variable, file)
	}
	require.NoError(t, err)
}
