package framework_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// nameServer answers questions for addresses of any name with what it has at the time.
type nameServer struct {
	mu        sync.Mutex
	addresses []string
	questions int
}

func (n *nameServer) set(addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses = addresses
}

// useNames makes the process ask a name server of this test's.
func useNames(t *testing.T, addresses ...string) *nameServer {
	t.Helper()
	n := &nameServer{addresses: addresses}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1500)
		for {
			size, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = pc.WriteTo(n.answer(b[:size]), from)
		}
	}()
	restore := framework.ReplaceResolver(&net.Resolver{PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", pc.LocalAddr().String())
		}})
	t.Cleanup(func() {
		restore()
		pc.Close()
		<-done
	})
	return n
}

// answer makes a DNS answer (RFC 1035, 4.1): the question, and an A record for each address if A
// records were asked for.
func (n *nameServer) answer(question []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	const header, typeA = 12, 1
	end := header
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	end += 1 + 4 // the root label, type and class
	out := append([]byte(nil), question[:end]...)
	binary.BigEndian.PutUint16(out[2:], 0x8580) // an answer, with authority
	binary.BigEndian.PutUint16(out[8:], 0)
	binary.BigEndian.PutUint16(out[10:], 0)
	binary.BigEndian.PutUint16(out[6:], 0)
	if binary.BigEndian.Uint16(question[end-4:]) != typeA {
		return out
	}
	n.questions++
	binary.BigEndian.PutUint16(out[6:], uint16(len(n.addresses)))
	for _, a := range n.addresses {
		out = append(out, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
		out = append(out, net.ParseIP(a).To4()...)
	}
	return out
}

// silentAt accepts connections and says nothing.
func silentAt(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	var conns []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
		for _, c := range conns {
			c.Close()
		}
	})
}

// TestOneNameForTheEnsemble has a name with two addresses, the first of which accepts connections
// and stays silent.
func TestOneNameForTheEnsemble(t *testing.T) {
	good, err := zktest.Start(t).ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(good)
	require.NoError(t, err)
	silentAt(t, "127.0.0.2:"+port)
	useNames(t, "127.0.0.2", "127.0.0.1")
	for range 4 { // the order is random
		c, err := framework.Connect(t.Context(),
			framework.Config{Servers: []string{"zk.example.test:" + port}, SessionTimeout: 3 * time.Second})
		require.NoError(t, err)
		require.NoError(t, c.Close(t.Context()))
	}
}

// TestANameIsLookedUpAgain moves a name to another address after the client has begun.
func TestANameIsLookedUpAgain(t *testing.T) {
	good, err := zktest.Start(t).ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(good)
	require.NoError(t, err)
	names := useNames(t, "127.0.0.3")
	c, err := framework.New(framework.Config{Servers: []string{"zk.example.test:" + port},
		RetryMax: 50 * time.Millisecond})
	require.NoError(t, err)
	c.Start()
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = c.Session(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	names.set("127.0.0.1")
	_, err = c.Session(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Close(t.Context()))
}

// TestNoServerIsPreferred counts which of three addresses clients try first.
func TestNoServerIsPreferred(t *testing.T) {
	first := map[string]int{}
	for range 60 {
		synctest.Test(t, func(t *testing.T) {
			link := zktest.Start(t).Link("a")
			var once sync.Once
			c, err := framework.Connect(t.Context(),
				framework.Config{Servers: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}},
				framework.WithTimeClock(),
				framework.WithDialer(func(ctx context.Context, n, a string) (net.Conn, error) {
					once.Do(func() { first[a]++ })
					return link.DialContext(ctx, n, a)
				}))
			require.NoError(t, err)
			require.NoError(t, c.Close(t.Context()))
		})
	}
	require.Len(t, first, 3)
}

// dials notes when which server is dialled.
type dials struct {
	link *zktest.Link

	mu    sync.Mutex
	asked []string
	at    []time.Time
}

func (d *dials) dial(ctx context.Context, n, a string) (net.Conn, error) {
	d.mu.Lock()
	d.asked, d.at = append(d.asked, a), append(d.at, time.Now())
	d.mu.Unlock()
	return d.link.DialContext(ctx, n, a)
}

// tried returns which servers were dialled so far, and when.
func (d *dials) tried() ([]string, []time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked), slices.Clone(d.at)
}

// TestServersCanBeReplaced at run time; the connection stays.
func TestServersCanBeReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{link: zktest.Start(t).Link("a")}
		c, err := framework.Connect(t.Context(), framework.Config{Servers: []string{"192.0.2.1"}},
			framework.WithTimeClock(), framework.WithDialer(d.dial))
		require.NoError(t, err)
		require.ErrorIs(t, c.SetServers(), framework.ErrInvalid)
		require.ErrorIs(t, c.SetServers("192.0.2.2:port"), framework.ErrInvalid)
		require.NoError(t, c.SetServers("192.0.2.2", "192.0.2.3:2182"))
		time.Sleep(time.Minute)
		asked, _ := d.tried()
		require.Equal(t, []string{"192.0.2.1:2181"}, asked, "the connection stays")
		for range 20 {
			d.link.Reset()
			time.Sleep(time.Second)
		}
		asked, _ = d.tried()
		require.NotContains(t, asked[1:], "192.0.2.1:2181")
		require.Contains(t, asked, "192.0.2.2:2181")
		require.Contains(t, asked, "192.0.2.3:2182")
		require.NoError(t, c.Close(t.Context()))
	})
}

// TestLostServerIsTriedLast, and not all clients of it reconnect in the same moment.
func TestLostServerIsTriedLast(t *testing.T) {
	pauses := map[time.Duration]bool{}
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			d := &dials{link: zktest.Start(t).Link("a")}
			c, err := framework.Connect(t.Context(), framework.Config{Servers: []string{"192.0.2.1", "192.0.2.2"}},
				framework.WithTimeClock(), framework.WithDialer(d.dial))
			require.NoError(t, err)
			lost := time.Now()
			d.link.Reset()
			time.Sleep(time.Second)
			asked, at := d.tried()
			require.Len(t, asked, 2)
			require.NotEqual(t, asked[0], asked[1])
			pause := at[1].Sub(lost)
			require.Less(t, pause, framework.Config{}.WithDefaults().RetryBase)
			pauses[pause] = true
			require.NoError(t, c.Close(t.Context()))
		})
	}
	require.Greater(t, len(pauses), 10)
}

// TestACertificateIsOfTheName connects to an address of a name, whose certificate is for the name
// alone.
func TestACertificateIsOfTheName(t *testing.T) {
	ca := newAuthority(t)
	_, port, err := net.SplitHostPort(secure(t, zktest.Start(t), ca, ca.sign("zk.example.test")))
	require.NoError(t, err)
	useNames(t, "127.0.0.1")
	c, err := framework.Connect(t.Context(), framework.Config{
		Servers: []string{"zk.example.test:" + port},
		TLS:     &tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{ca.sign("client")}},
	})
	require.NoError(t, err)
	require.NoError(t, c.Close(t.Context()))
}
