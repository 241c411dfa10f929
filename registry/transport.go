package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// Transport returns a transport that sends each HTTP request to an instance that the pool picks,
// over base or, if that is nil, http.DefaultTransport. It replaces the host of the request's URL by
// the instance's Address and port: Port, or with https SSLPort. The Host header stays. The former
// host and the path of the URL are the key of PickFor.
//
// With https an http.Transport checks certificates against the host of the URL, which is the
// instance's address. Set TLSClientConfig.ServerName in base if the certificates have the service's
// name.
//
// A call lasts until the response's body is closed or a read of it fails. It has failed if base
// returns an error, if the status is 500, 502, 503 or 504, or if a read of the body fails. This
// includes the end of the request's deadline: the instance has not answered in the caller's time.
// If the caller has cancelled the request's context, the call counts neither as a failure nor as a
// success; see Picked.Done. The transport does not repeat requests.
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

// statusError is the status of a response that counts as a failure.
type statusError int

func (e statusError) Error() string { return http.StatusText(int(e)) }

// RoundTrip picks an instance and sends the request to it.
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
		picked.Done(orCanceled(req.Context(), err))
		return nil, err
	}
	body := &countedBody{body: resp.Body, picked: picked, ctx: req.Context()}
	switch resp.StatusCode {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		body.status = statusError(resp.StatusCode)
	}
	resp.Body = body
	if writer, ok := body.body.(io.Writer); ok { // the connection, after the status 101
		resp.Body = &writableBody{body, writer}
	}
	return resp, nil
}

// orCanceled returns context.Canceled if a request's caller has cancelled it, and else err. The
// error of a cancelled request may be the cause that the caller has given.
func orCanceled(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	return err
}

// countedBody is a response's body. It ends the call when the caller closes it or a read fails.
// Reads and Close may be concurrent.
type countedBody struct {
	body   io.ReadCloser
	picked Picked
	ctx    context.Context // of the request
	status error           // the statusError, or nil
	once   sync.Once       // ends the call
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.endCall(orCanceled(b.ctx, err))
	}
	return n, err
}

// Close ends the call before it closes the body, since a read under way fails then.
func (b *countedBody) Close() error {
	b.endCall(nil)
	return b.body.Close()
}

// endCall ends the call with the error of its status, or else with err.
func (b *countedBody) endCall(err error) {
	if b.status != nil {
		err = b.status
	}
	b.once.Do(func() { b.picked.Done(err) })
}

// writableBody is the body of a response to a request for another protocol, such as WebSocket.
type writableBody struct {
	*countedBody
	io.Writer
}
