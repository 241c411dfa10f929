package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTheNightIsOnThePage until the program ends, which leaves nothing behind.
func TestTheNightIsOnThePage(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, address) }()
	defer http.DefaultClient.CloseIdleConnections()
	page := func(name string) string {
		r, err := http.Get("http://" + address + "/" + name)
		if err != nil {
			return ""
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return string(text)
	}
	require.Eventually(t, func() bool { return page("locks") != "" }, time.Minute, 10*time.Millisecond)
	for name, want := range map[string]string{"locks": "invoice-numbers", "elections": "orders", "queues": "invoices",
		"jobs": "ledger-close", "group?path=/apps/members/billing": "disk is to be replaced",
		"service?path=/apps/services/billing": "connection refused", "value?path=/apps/config/billing": "bank is slow",
		"workflow?path=/apps/orders&id=order-7713": "paid", "workflow?path=/apps/orders&id=order-7714": "carrier",
		"lock?path=/apps/locks/ledger": "billing-5-417"} {
		require.Eventually(t, func() bool { return strings.Contains(page(name), want) }, time.Minute,
			100*time.Millisecond, name)
	}
	stop()
	require.NoError(t, <-ended)
}
