package registry_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/registry"
)

// send is a transport that calls a function.
type send func(*http.Request) (*http.Response, error)

func (f send) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTransportSendsToInstances(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		one, two := w.register(m, "one"), w.register(m, "two")
		require.NoError(t, one.Update(t.Context(), func(i *registry.Instance) { i.Address, i.SSLPort = "h1", 8443 }))
		require.NoError(t, two.Update(t.Context(), func(i *registry.Instance) { i.Address = "h2" }))
		hosts := map[string]int{}
		p := w.pool(m, registry.WithBalancer(registry.RoundRobin), registry.WithEjection(2, time.Minute))
		client := http.Client{Transport: p.Transport(send(func(r *http.Request) (*http.Response, error) {
			require.Equal(t, "billing.internal", r.Host)
			hosts[r.URL.Host]++
			if r.URL.Host == "h2:8080" {
				return &http.Response{StatusCode: 503, Body: io.NopCloser(strings.NewReader("busy")), Request: r}, nil
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("yes")), Request: r}, nil
		}))}
		for range 20 {
			resp, err := client.Get("http://billing.internal/invoices")
			require.NoError(t, err)
			_, err = io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
		require.Equal(t, map[string]int{"h1:8080": 18, "h2:8080": 2}, hosts)
		resp, err := client.Get("https://billing.internal/x")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 1, hosts["h1:8443"])
		require.NoError(t, p.Close(t.Context()))
		_, err = client.Post("http://billing.internal/x", "text/plain", strings.NewReader("x"))
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}

// readFunc is a reader that calls a function.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// TestTransportCountsHowCallsEnd: an instance that does not answer before the request's deadline,
// or breaks off its answer, fails. A request that its caller has cancelled shows neither a failure
// nor a success.
func TestTransportCountsHowCallsEnd(t *testing.T) {
	hang := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	refuse := func(*http.Request) (*http.Response, error) { return nil, io.EOF }
	respond := func(body io.Reader) send {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(body), Request: r}, nil
		}
	}
	breakOff := respond(io.MultiReader(strings.NewReader("half"),
		readFunc(func([]byte) (int, error) { return 0, io.ErrUnexpectedEOF })))
	hangInBody := func(r *http.Request) (*http.Response, error) {
		return respond(readFunc(func([]byte) (int, error) { _, err := hang(r); return 0, err }))(r)
	}
	cancelled := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(time.Second, func() { cancel(io.ErrClosedPipe) })
		return ctx, func() { timer.Stop(); cancel(nil) }
	}
	timedOut := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Second)
	}
	type call struct {
		base    send
		context func(context.Context) (context.Context, context.CancelFunc)
	}
	for name, test := range map[string]struct {
		calls   []call // of "one"
		ejected bool
	}{
		"deadline":                 {[]call{{hang, timedOut}, {hang, timedOut}}, true},
		"deadline in the body":     {[]call{{hangInBody, timedOut}, {hangInBody, timedOut}}, true},
		"broken body":              {[]call{{breakOff, timedOut}, {breakOff, timedOut}}, true},
		"cancelled":                {[]call{{hang, cancelled}, {hang, cancelled}, {hang, cancelled}}, false},
		"cancelled in the body":    {[]call{{hangInBody, cancelled}, {hangInBody, cancelled}}, false},
		"cancelled between others": {[]call{{refuse, timedOut}, {hang, cancelled}, {refuse, timedOut}}, true},
		"success between others": {[]call{
			{refuse, timedOut}, {respond(strings.NewReader("all")), timedOut}, {refuse, timedOut},
		}, false},
	} {
		in(t, func(t *testing.T, w *world) {
			m := w.member("a")
			one := w.register(m, "one")
			p := w.pool(m, registry.WithEjection(2, time.Hour), registry.WithBalancer(registry.RoundRobin))
			for _, c := range test.calls {
				ctx, cancel := c.context(t.Context())
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://billing.internal/", nil)
				require.NoError(t, err)
				resp, err := p.Transport(c.base).RoundTrip(r)
				if err == nil {
					_, _ = io.ReadAll(resp.Body)
					require.NoError(t, resp.Body.Close())
				}
				cancel()
			}
			require.NoError(t, one.Disable(t.Context(), "x")) // so that the pool's next list has both at once
			w.register(m, "two")
			require.NoError(t, one.Enable(t.Context()))
			synctest.Wait()
			counts := pick(t, p, 10, nil)
			require.Equal(t, test.ejected, counts["one"] == 0, "%s: %v", name, counts)
		})
	}
}

// TestTransportPassesAnUpgradedConnection, whose body httputil.ReverseProxy writes to.
func TestTransportPassesAnUpgradedConnection(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		w.register(m, "one")
		near, far := net.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://billing.internal/", nil)
		require.NoError(t, err)
		resp, err := w.pool(m).Transport(send(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: near, Request: r}, nil
		})).RoundTrip(r)
		require.NoError(t, err)
		body, ok := resp.Body.(io.ReadWriteCloser)
		require.True(t, ok)
		go func() { _, _ = io.Copy(far, far) }()
		_, err = body.Write([]byte("ping"))
		require.NoError(t, err)
		echo := make([]byte, 4)
		_, err = io.ReadFull(body, echo)
		require.NoError(t, err)
		require.Equal(t, "ping", string(echo))
		require.NoError(t, body.Close())
		require.NoError(t, far.Close())
	})
}

// closeEndsRead is a body whose Close ends a read with an error, and returns after that.
type closeEndsRead struct{ closed chan struct{} }

func (b closeEndsRead) Read([]byte) (int, error) { <-b.closed; return 0, io.ErrClosedPipe }

func (b closeEndsRead) Close() error { close(b.closed); synctest.Wait(); return nil }

// TestCloseOfABodyUnderReadIsNoFailure: the read fails because the caller has closed the body.
func TestCloseOfABodyUnderReadIsNoFailure(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		w.register(m, "one")
		w.register(m, "two")
		p := w.pool(m, registry.WithEjection(1, time.Hour), registry.WithBalancer(registry.RoundRobin))
		require.Len(t, w.listed(p), 2)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://billing.internal/", nil)
		require.NoError(t, err)
		resp, err := p.Transport(send(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: closeEndsRead{make(chan struct{})}, Request: r}, nil
		})).RoundTrip(r)
		require.NoError(t, err)
		go func() { _, _ = resp.Body.Read(nil) }()
		synctest.Wait()
		require.NoError(t, resp.Body.Close())
		require.Len(t, pick(t, p, 10, nil), 2)
	})
}
