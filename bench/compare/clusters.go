//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisPair starts a primary and its replica.
func (h *holders) redisPair(ctx context.Context) (primary, replica *process, err error) {
	dirs := make([]string, 2)
	for i := range dirs {
		if dirs[i], err = h.newDir("redis"); err != nil {
			return nil, nil, err
		}
	}
	if primary, err = startRedis(ctx, dirs[0]); err != nil {
		return nil, nil, err
	}
	if replica, err = startRedis(ctx, dirs[1]); err != nil {
		primary.kill()
		return nil, nil, err
	}
	host, port, _ := net.SplitHostPort(primary.addr)
	err = redisDo(ctx, replica, "REPLICAOF", host, port)
	for err == nil {
		info := redis.NewClient(&redis.Options{Addr: primary.addr})
		text := info.Info(ctx, "replication").Val()
		_ = info.Close()
		if strings.Contains(text, "state=online") {
			return primary, replica, nil
		}
		err = pause(ctx, 50*time.Millisecond)
	}
	primary.kill()
	replica.kill()
	return nil, nil, err
}

func redisDo(ctx context.Context, p *process, command ...any) error {
	c := redis.NewClient(&redis.Options{Addr: p.addr})
	defer func() { _ = c.Close() }()
	return c.Do(ctx, command...).Err()
}

// redirect is an address at which connections wait until a server can take them.
type redirect struct {
	addr, to string
	listener net.Listener
	ready    chan struct{}
}

func (r *redirect) listen() (err error) {
	r.ready = make(chan struct{})
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	r.addr = r.listener.Addr().String()
	go func() {
		for {
			in, err := r.listener.Accept()
			if err != nil {
				return
			}
			go func() {
				<-r.ready
				out, err := net.Dial("tcp", r.to)
				if err != nil {
					in.Close()
					return
				}
				go func() { _, _ = io.Copy(out, in); out.Close() }()
				_, _ = io.Copy(in, out)
				in.Close()
			}()
		}
	}()
	return nil
}

func (r *redirect) open() error { close(r.ready); return nil }
func (r *redirect) close()      { r.listener.Close() }

// postgresPair starts a primary and a replica that streams from it.
func (h *holders) postgresPair(ctx context.Context) (primary, replica *process, err error) {
	dirs := make([]string, 2)
	for i := range dirs {
		if dirs[i], err = h.newDir("postgres"); err != nil {
			return nil, nil, err
		}
	}
	if primary, err = startPostgres(ctx, dirs[0]); err != nil {
		return nil, nil, err
	}
	if replica, err = startPostgresReplica(ctx, dirs[1], primary); err != nil {
		primary.kill()
	}
	return primary, replica, err
}

// etcdCluster is three servers of etcd, each in a network of its own.
type etcdCluster struct {
	processes []*process
	names     []string
}

const etcdNetwork = "10.213.77."

func (c *etcdCluster) ip(i int) string { return fmt.Sprintf("%s%d", etcdNetwork, i+11) }

func runIP(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func startEtcdCluster(ctx context.Context, h *holders) (c *etcdCluster, err error) {
	c = &etcdCluster{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	c.close() // what an earlier run has left
	err = errors.Join(runIP("link", "add", "compare-etcd", "type", "bridge"), runIP("addr", "add", etcdNetwork+"1/24",
		"dev", "compare-etcd"), runIP("link", "set", "compare-etcd", "up"))
	if err != nil {
		return c, err
	}
	var cluster []string
	for i := range 3 {
		name := fmt.Sprintf("compare-etcd-%d", i)
		c.names = append(c.names, name)
		cluster = append(cluster, fmt.Sprintf("%s=http://%s:2380", name, c.ip(i)))
		veth, far := fmt.Sprintf("cmpetcd%d", i), fmt.Sprintf("cmpetcd%dn", i)
		for _, args := range [][]string{{"netns", "add", name},
			{"link", "add", veth, "type", "veth", "peer", "name", far},
			{"link", "set", veth, "master", "compare-etcd", "up"}, {"link", "set", far, "netns", name},
			{"-n", name, "link", "set", "lo", "up"}, {"-n", name, "link", "set", far, "up"},
			{"-n", name, "addr", "add", c.ip(i) + "/24", "dev", far}} {
			if err := runIP(args...); err != nil {
				return c, err
			}
		}
	}
	started := make(chan error, 3)
	c.processes = make([]*process, 3)
	for i := range 3 {
		dir, err := h.newDir("etcd")
		if err != nil {
			return c, err
		}
		go func() {
			client, peer := c.ip(i)+":2379", "http://"+c.ip(i)+":2380"
			p, err := startProcess(ctx, dir, client, nil, "ip", "netns", "exec", c.names[i], "etcd",
				"--name", c.names[i], "--data-dir", filepath.Join(dir, "data"), "--log-level", "error",
				"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
				"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
				"--initial-cluster", strings.Join(cluster, ","))
			c.processes[i] = p
			started <- err
		}()
	}
	return c, errors.Join(<-started, <-started, <-started)
}

func (c *etcdCluster) addrs() (all []string) {
	for i := range c.names {
		all = append(all, c.ip(i)+":2379")
	}
	return all
}

func (c *etcdCluster) close() {
	for _, p := range c.processes {
		if p != nil {
			p.kill()
		}
	}
	for i := range 3 {
		_ = runIP("link", "del", fmt.Sprintf("cmpetcd%d", i)) // it would go with its network, some time later
		_ = runIP("netns", "del", fmt.Sprintf("compare-etcd-%d", i))
	}
	_ = runIP("link", "del", "compare-etcd")
}

// leader returns the index of the server that leads.
func (c *etcdCluster) leader(ctx context.Context) (int, error) {
	conn, err := connectEtcd(c.addrs(), holderSession)
	if err != nil {
		return 0, err
	}
	client := conn.(etcdConnection)
	defer func() { _ = client.Close() }()
	for i, addr := range c.addrs() {
		s, err := client.Status(ctx, addr)
		if err != nil {
			return 0, err
		}
		if s.Leader == s.Header.MemberId {
			return i, nil
		}
	}
	return 0, errors.New("no server leads")
}
