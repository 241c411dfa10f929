package registry

import (
	"io"
	"net/http"
	"sync"
)

// Transport sends each HTTP request to an instance that the pool picks, whatever the request's host is, over base or http.DefaultTransport. With https it uses
// Instance.SSLPort. The Host header stays, as does the name that certificates are checked for. An error of the connection and a status of 500, 502, 503 or 504 are failures of the
// instance. It does not repeat requests.
func (p *Pool) Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &poolTransport{p, base}
}

type poolTransport struct {
	pool *Pool
	base http.RoundTripper
}

// statusError is a response that counts as a failure.
type statusError int

func (e statusError) Error() string { return http.StatusText(int(e)) }

// RoundTrip picks an instance and sends the request to it. The call lasts until the response's body is closed.
func (t *poolTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	picked, err := t.pool.PickFor(req.Context(), req.URL.Host+req.URL.Path)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	out := req.Clone(req.Context())
	if out.Host == "" {
		out.Host = req.URL.Host
	}
	out.URL.Host = picked.Instance.HostPort(req.URL.Scheme == "https")
	resp, err := t.base.RoundTrip(out)
	if err != nil {
		if req.Context().Err() != nil {
			picked.Done(nil) // the caller has given up
		} else {
			picked.Done(err)
		}
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		err = statusError(resp.StatusCode)
	}
	resp.Body = &countedBody{body: resp.Body, done: sync.OnceFunc(func() { picked.Done(err) })}
	return resp, nil
}

// countedBody ends a call with its response's body.
type countedBody struct {
	body io.ReadCloser
	done func()
}

func (b *countedBody) Read(p []byte) (int, error) { return b.body.Read(p) }

func (b *countedBody) Close() error {
	defer b.done()
	return b.body.Close()
}
