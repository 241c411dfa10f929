//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// stores are the servers of a run.
type stores struct {
	dir       string
	ensembles map[string]*ensemble.Ensemble
	processes map[string]*process // the other servers
}

// process is a server of one process.
type process struct {
	addr    string
	command *exec.Cmd
}

// startStores starts the servers that are needed. The caller must close them.
func startStores(ctx context.Context, needed map[string]bool) (s *stores, err error) {
	s = &stores{ensembles: map[string]*ensemble.Ensemble{}, processes: map[string]*process{}}
	if s.dir, err = os.MkdirTemp("", "compare-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.Chmod(s.dir, 0o755); err != nil { // PostgreSQL runs as another user
		return s, err
	}
	for name, n := range map[string]int{zk1: 1, zk3: 3} {
		if !needed[name] {
			continue
		}
		s.ensembles[name], err = ensemble.Start(ctx, ensemble.Config{Servers: n, HeapMB: 512,
			Lines: []string{"maxClientCnxns=0"}})
		if err != nil {
			return s, err
		}
	}
	for name, start := range map[string]func(context.Context, string) (*process, error){
		etcd1: startEtcd, redis1: startRedis, postgres: startPostgres} {
		if !needed[name] {
			continue
		}
		dir := filepath.Join(s.dir, strings.Fields(name)[0])
		if err := os.Mkdir(dir, 0o755); err != nil {
			return s, err
		}
		if s.processes[name], err = start(ctx, dir); err != nil {
			return s, fmt.Errorf("start %s: %w", name, err)
		}
	}
	return s, nil
}

// addresses returns where a job connects. On three servers, a single client connects to a follower:
// its requests cost more there, and where it connects must not be left to chance.
func (s *stores) addresses(j job) ([]string, error) {
	if p := s.processes[j.servers]; p != nil {
		return []string{p.addr}, nil
	}
	e := s.ensembles[j.servers]
	if j.servers == zk3 && j.work == "uncontended" {
		followers := e.Followers()
		if len(followers) == 0 {
			return nil, errors.New("the ensemble has no follower")
		}
		return []string{e.Addr(followers[0])}, nil
	}
	return e.Addrs(), nil
}

// pids returns the processes of servers.
func (s *stores) pids(servers string) string {
	if p := s.processes[servers]; p != nil {
		return strconv.Itoa(p.command.Process.Pid)
	}
	var pids []string
	for _, pid := range s.ensembles[servers].PIDs() {
		pids = append(pids, strconv.Itoa(pid))
	}
	return strings.Join(pids, ",")
}

// close stops the servers and removes their data.
func (s *stores) close() error {
	var errs []error
	for _, e := range s.ensembles {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	for _, p := range s.processes {
		if p != nil {
			p.kill()
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

func startEtcd(ctx context.Context, dir string) (*process, error) {
	addr, peer := freeAddr(), freeAddr()
	return startProcess(ctx, dir, addr, nil, "etcd", "--name", "one", "--data-dir", filepath.Join(dir, "data"),
		"--log-level", "error", "--listen-client-urls", "http://"+addr, "--advertise-client-urls", "http://"+addr,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "one=http://"+peer)
}

func startRedis(ctx context.Context, dir string) (*process, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil { // Debian's package redis-tools has the program by another name, and starts no service
		program, err = exec.LookPath("redis-check-rdb")
	}
	if err != nil {
		return nil, err
	}
	addr := freeAddr()
	_, port, _ := net.SplitHostPort(addr)
	return startProcess(ctx, dir, addr, nil, "redis-server@"+program, "--bind", "127.0.0.1", "--port", port,
		"--dir", dir, "--save", "", "--appendonly", "no")
}

// postgresPrograms are where Debian keeps PostgreSQL's programs.
const postgresPrograms = "/usr/lib/postgresql/*/bin/postgres"

func startPostgres(ctx context.Context, dir string) (*process, error) {
	found, _ := filepath.Glob(postgresPrograms)
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: %w", postgresPrograms, os.ErrNotExist)
	}
	program := found[len(found)-1]
	owner, err := postgresUser(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	init := exec.CommandContext(ctx, filepath.Join(filepath.Dir(program), "initdb"), "-D", data, "-A", "trust", "-U",
		"postgres", "--no-sync")
	init.Dir, init.SysProcAttr = dir, owner
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	addr := freeAddr()
	_, port, _ := net.SplitHostPort(addr)
	return servingPostgres(startProcess(ctx, dir, addr, owner, program, "-D", data, "-k", dir, "-h", "127.0.0.1",
		"-p", port, "-c", "max_connections=1200"))
}

// servingPostgres waits until a server that has started takes sessions.
func servingPostgres(p *process, err error) (*process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for err == nil {
		c, refused := pgx.Connect(ctx, postgresURL(p.addr))
		if refused == nil {
			return p, c.Close(ctx)
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			p.kill()
			err = refused
		}
	}
	return nil, err
}

// startPostgresReplica starts a server that follows a primary.
func startPostgresReplica(ctx context.Context, dir string, primary *process) (*process, error) {
	owner, err := postgresUser(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	host, port, _ := net.SplitHostPort(primary.addr)
	program := filepath.Join(filepath.Dir(primary.command.Path), "pg_basebackup")
	copied := exec.CommandContext(ctx, program, "-h", host, "-p", port, "-U", "postgres",
		"-D", data, "-R", "-c", "fast")
	copied.Dir, copied.SysProcAttr = dir, owner
	if out, err := copied.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	addr := freeAddr()
	_, port, _ = net.SplitHostPort(addr)
	return servingPostgres(startProcess(ctx, dir, addr, owner, primary.command.Path, "-D", data, "-k", dir, "-h", host,
		"-p", port, "-c", "max_connections=1200")) // no fewer than the primary allows
}

// postgresUser returns as whom PostgreSQL runs, which refuses to run as root: then as its own user,
// who gets dir.
func postgresUser(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2, os.Chown(dir, uid, gid)); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// startProcess starts a server and waits until it accepts connections. program may be name@path,
// for a program that looks at the name by which it is called.
func startProcess(ctx context.Context, dir, addr string, owner *syscall.SysProcAttr, program string,
	args ...string) (*process, error) {
	name, path, renamed := strings.Cut(program, "@")
	if !renamed {
		path = name
	}
	command := exec.Command(path, args...)
	if renamed {
		command.Args[0] = name
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if owner == nil {
		owner = &syscall.SysProcAttr{}
	}
	owner.Pdeathsig = syscall.SIGKILL
	command.Dir, command.Stdout, command.Stderr, command.SysProcAttr = dir, log, log, owner
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &process{addr: addr, command: command}
	for range 300 {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			return p, c.Close()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			p.kill()
			return nil, ctx.Err()
		}
	}
	p.kill()
	text, _ := os.ReadFile(log.Name())
	return nil, fmt.Errorf("%s does not accept connections: %s", name, text)
}

// freeAddr returns a port that nobody uses now.
func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}
