package ui

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTLSServesHTTP2: a browser has one connection for all its pages, whatever their number.
func TestTLSServesHTTP2(t *testing.T) {
	other := httptest.NewTLSServer(http.NotFoundHandler()) // it has a certificate and a client that trusts it
	defer other.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serveUntil(ctx, listener, &tls.Config{Certificates: other.TLS.Certificates,
			MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, http.NotFoundHandler())
	}()
	client := other.Client()
	transport, isTransport := client.Transport.(*http.Transport)
	require.True(t, isTransport)
	transport.ForceAttemptHTTP2 = true
	r, err := client.Get("https://" + listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, 2, r.ProtoMajor)
	client.CloseIdleConnections()
	end()
	require.NoError(t, <-ended)
}
