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

// TestWatchdogOverTLS ends holders whose sessions can only be closed over TLS, with a client certificate.
func TestWatchdogOverTLS(t *testing.T) {
	s := newSecured(t)
	s.export(t)
	t.Run("dead processes", func(t *testing.T) {
		for name, end := range map[string]func(*prey){
			"kill": (*prey).kill,
			"exit": func(p *prey) { p.order("exit") },
		} {
			t.Run(name, func(t *testing.T) {
				p := hunt(t, s.arena, hourglass, s.SecureAddr(0))
				next := p.queue()
				since := time.Now()
				end(p)
				p.inherited(next, soon, since)
				p.ended(p.dog)
			})
		}
	})
	t.Run("commands", func(t *testing.T) {
		p := hunt(t, s.arena, hourglass, s.SecureAddr(0))
		pids := p.startCommand()
		next := p.queue()
		since := time.Now()
		p.kill()
		p.inherited(next, soon, since)
		p.wantDead(pids)
	})
}

// export puts the right certificates into the environment, for processes.
func (s *secured) export(t *testing.T) {
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
