//go:build unix

package main

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUIServesThePage until a signal ends it, also while a page is open.
func TestUIServesThePage(t *testing.T) {
	s := newStage(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := s.start("ui", "--listen", "127.0.0.1:0", "--json")
		address := decode(t, p.line(0))["url"].(string)
		get := func(page string) *http.Response {
			r, err := http.Get(address + page) //nolint:gosec // the address that the command has printed
			require.NoError(t, err)
			return r
		}
		page := get("")
		text, err := io.ReadAll(page.Body)
		require.NoError(t, err)
		require.NoError(t, page.Body.Close())
		require.Contains(t, string(text), "Nothing is wrong")
		stream := get("events?page=locks")
		require.Equal(t, "text/event-stream", stream.Header.Get("Content-Type"))
		p.signal(sig)
		require.Equal(t, 0, p.wait())
		_, err = io.Copy(io.Discard, stream.Body)
		require.NoError(t, err, "the stream ends")
		require.NoError(t, stream.Body.Close())
		http.DefaultClient.CloseIdleConnections()
	}
}

func TestUIRefuses(t *testing.T) {
	s := newStage(t)
	for args, want := range map[string]string{
		"--listen 0.0.0.0:0":                    "--unprotected",
		"--listen x":                            `--listen "x" is not host:port`,
		"--zone Nowhere":                        `--zone "Nowhere"`,
		"--interval 1ms":                        "the interval is 1ms",
		"--host a:1":                            `"a:1" is no host name`,
		"--tls-cert none --tls-key none":        "--tls-cert none",
		"--tls-cert none":                       "tls-key",
		"relative":                              "relative",
		"--listen 127.0.0.1:0 --interval twice": "twice",
	} {
		code, _, errs := s.run(append([]string{"ui"}, strings.Fields(args)...)...)
		require.Equal(t, 64, code, "%s: %s", args, errs)
		require.Contains(t, errs, want, args)
	}
}
