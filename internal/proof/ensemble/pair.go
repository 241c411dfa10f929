package ensemble

import (
	"io"
	"net"
	"sync"
	"time"
)

// proxiedConn is one client's connection and the one made to the target for it.
type proxiedConn struct {
	proxy  *Proxy
	client net.Conn
	sent   io.Reader     // what travels up: the client's bytes, filtered
	done   chan struct{} // closed by reset

	mu      sync.Mutex
	target  net.Conn
	address string // of target
	ended   bool
}

// run copies both directions until both sides have ended or the pair is reset.
func (c *proxiedConn) run() {
	defer c.proxy.remove(c)
	defer c.reset()
	// A network that loses packets also loses the first packet of a connection.
	if !c.proxy.up.wait(c.done) || !c.proxy.down.wait(c.done) || !c.dial() {
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { c.pump(c.target, c.sent, &c.proxy.up) })
	pumps.Go(func() { c.pump(c.client, c.target, &c.proxy.down) })
	pumps.Wait()
}

// dial connects to the first target that listens. It tries again until the proxy's patience is
// over.
func (c *proxiedConn) dial() bool {
	deadline := time.Now().Add(c.proxy.patience)
	for {
		for _, target := range c.proxy.targets {
			if conn, err := net.DialTimeout("tcp", target, dialPatience); err == nil {
				return c.setTarget(conn, target)
			}
		}
		if time.Now().After(deadline) || !c.pause(20*time.Millisecond) {
			return false
		}
	}
}

// dialPatience is more than a connect on the loopback takes.
const dialPatience = time.Second

// pause waits for d. It returns false as soon as the pair is reset.
func (c *proxiedConn) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.done:
		return false
	}
}

func (c *proxiedConn) setTarget(conn net.Conn, target string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		conn.Close()
		return false
	}
	c.target, c.address = conn, target
	return true
}

// connectedTo returns the target's address, or "" if there is no target.
func (c *proxiedConn) connectedTo() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return ""
	}
	return c.address
}

// pump copies one direction through its gate. The end of the source passes the gate
// as its bytes do, and then ends the whole pair, because ZooKeeper has no half-closed
// connections.
func (c *proxiedConn) pump(dst io.Writer, src io.Reader, g *pauseGate) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if !g.wait(c.done) || !c.delayedCopy() {
			return
		}
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			c.client.Close()
			c.target.Close()
			return
		}
	}
}

// reset ends both connections with a TCP reset.
func (c *proxiedConn) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	close(c.done)
	for _, conn := range []net.Conn{c.client, c.target} {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		}
	}
}
