package queue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// links are a client's ways to the servers.
type links struct{ proxies []*ensemble.Proxy }

func (s *ensembleRun) link() *links {
	l := &links{}
	for i := range s.Size() {
		p, err := ensemble.NewProxy(s.Addr(i))
		require.NoError(s.t, err)
		s.t.Cleanup(p.Close)
		l.proxies = append(l.proxies, p)
	}
	return l
}

func (l *links) addrs() (addrs []string) {
	for _, p := range l.proxies {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

func (l *links) each(f func(*ensemble.Proxy)) {
	for _, p := range l.proxies {
		f(p)
	}
}

func (l *links) reset() { l.each((*ensemble.Proxy).Reset) }
func (l *links) cut()   { l.each((*ensemble.Proxy).Cut) }
func (l *links) heal()  { l.each((*ensemble.Proxy).Heal) }
func (l *links) hold()  { l.each(func(p *ensemble.Proxy) { p.Hold(ensemble.Both) }) }

// loseReplies lets requests through for a while, and cuts the connections before they are answered.
func (l *links) loseReplies(d time.Duration) {
	l.each(func(p *ensemble.Proxy) { p.Hold(ensemble.Down) })
	pause(context.Background(), d)
	l.reset()
	l.each(func(p *ensemble.Proxy) { p.Release(ensemble.Down) })
}

// consumerProcess is a consumer, here or in a process of its own.
type consumerProcess struct {
	links         *links
	kill          func() // ends it with what it has; its session expires
	leave         func() // ends it in peace, and waits
	startConsumer func() // starts another one of its kind
}

// replace kills a consumer and starts another.
func (s *ensembleRun) replace(i int) {
	b := s.alive[i]
	s.alive = slices.Delete(s.alive, i, i+1)
	b.kill()
	b.startConsumer()
}

// startConsumer starts a consumer in this process. It is killed by cutting it off for good, so that
// its session is not closed.
func (s *ensembleRun) startConsumer() {
	l := s.link()
	c, q := s.open(l)
	ctx, stop := context.WithCancel(context.Background())
	seed := s.rand.Uint64()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.takeBatches(ctx, q, 60*time.Millisecond, rand.New(rand.NewPCG(seed, 2)))
	}()
	end := func(patience context.Context) {
		stop()
		_ = q.Close(patience)
		_ = c.Close(context.Background())
		<-ended
	}
	b := &consumerProcess{links: l, startConsumer: s.startConsumer, leave: func() { end(context.Background()) }}
	b.kill = func() {
		s.struck["consumers dropped"]++
		l.cut()
		over, cancel := context.WithCancel(context.Background())
		cancel()
		end(over)
		l.each((*ensemble.Proxy).Close)
	}
	s.alive = append(s.alive, b)
}

// consumerVariable makes the test binary a consumer: the order, the root and the servers, separated
// by spaces.
const consumerVariable = "LOCKSTEP_QUEUE_TEST_CONSUMER"

// startProcess starts a consumer that is a process.
func (s *ensembleRun) startProcess() {
	l := s.link()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(),
		consumerVariable+"="+strings.Join(append([]string{string(s.order), s.root}, l.addrs()...), " "))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(s.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	heard := make(chan struct{})
	go func() { defer close(heard); s.listen(out, in) }()
	b := &consumerProcess{links: l, startConsumer: s.startProcess}
	b.leave = func() { _ = in.Close(); <-heard; _ = cmd.Wait() }
	b.kill = func() {
		s.struck["processes killed"]++
		_ = cmd.Process.Kill()
		<-heard
		_ = cmd.Wait()
		l.each((*ensemble.Proxy).Close)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	s.alive = append(s.alive, b)
}

// listen keeps the books of another process. It says "start" and the items that it has taken, goes
// on when it is told so, and says the outcomes of their acknowledgements. What it does not live to
// say is unknown.
func (s *ensembleRun) listen(out io.Reader, in io.Writer) {
	open := map[string]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		for _, v := range words[1:] {
			switch words[0] {
			case "start":
				open[v] = true
				s.startOf(v, nil)
			case "fault":
				s.fault("a process: %s", lines.Text())
			default:
				delete(open, v)
				s.ackEnded(v, outcomes[words[0]])
			}
		}
		if words[0] == "start" {
			_, _ = io.WriteString(in, "go\n") // it may be dead
		}
	}
	for v := range open {
		s.ackEnded(v, errUnknown)
	}
}

var outcomes = map[string]error{"acked": nil, "lost": ErrLost, "unknown": errUnknown}

// wordFor is the word for an acknowledgement's.
func wordFor(err error) string {
	switch {
	case err == nil:
		return "acked"
	case errors.Is(err, errUnknown):
		return "unknown"
	case errors.Is(err, ErrLost):
		return "lost"
	}
	return "fault " + err.Error()
}

// consumeAsProcess is a process's work, until nobody tells it to go on.
func consumeAsProcess(how string) {
	words := strings.Fields(how)
	ctx, cancel := context.WithTimeout(context.Background(), siegePatience)
	defer cancel()
	c, err := framework.Connect(ctx, ensembleConfig(words[2:], words[1]),
		framework.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println("fault", err)
		return
	}
	q := New(c, "/q", codec.Text(), ensembleOptions(Order(words[0]))...)
	told := make(chan bool)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			told <- true
		}
		close(told)
	}()
	for serveOnce(q, told) {
	}
	_ = q.Close(context.Background())
	_ = c.Close(context.Background())
}

// serveOnce works on a handful; false when it is to leave.
func serveOnce(q *Queue[string], told <-chan bool) bool {
	var line []string
	ds, err := takeSeveral(context.Background(), q, func(d *Delivery[string]) { line = append(line, d.Value) })
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		fmt.Println("fault", err)
	}
	if len(ds) == 0 {
		select {
		case <-told:
			return false
		default:
			return true
		}
	}
	fmt.Println("start", strings.Join(line, " "))
	if !<-told {
		return false
	}
	pause(context.Background(), rand.N(60*time.Millisecond))
	ackAll(ds, func(d *Delivery[string], err error) { fmt.Println(wordFor(err), d.Value) })
	return true
}
