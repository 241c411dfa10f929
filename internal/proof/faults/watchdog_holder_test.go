//go:build unix

package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// watchedVariable is an environment variable. With it, the test binary runs as a process that holds
// a lock and has a watchdog.
const watchedVariable = "LOCKSTEP_FAULTS_WATCHED"

// watchdogLog is a log handler that prints when a watchdog is armed.
type watchdogLog struct{}

func (watchdogLog) Enabled(context.Context, slog.Level) bool { return true }
func (watchdogLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "watchdog armed" {
		r.Attrs(func(attr slog.Attr) bool {
			printLine(map[string]string{"pid": "armed", "after": "took"}[attr.Key], attr.Value)
			return true
		})
	}
	return nil
}
func (h watchdogLog) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h watchdogLog) WithGroup(string) slog.Handler      { return h }

// watchedHolder holds the lock and executes orders from standard input.
type watchedHolder struct {
	client *framework.Client
	lease  *locks.Lease
}

// runWatchedHolder runs a watchedHolder if the environment says so. Otherwise it returns false.
func runWatchedHolder() bool {
	if os.Getenv(watchedVariable) == "" {
		return false
	}
	if err := holdAndReadOrders(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func holdAndReadOrders(ctx context.Context) error {
	cfg, err := framework.ConfigFromEnv()
	if err != nil {
		return err
	}
	c, err := framework.Connect(ctx, cfg, framework.WithWatchdog(), framework.WithLogger(slog.New(watchdogLog{})))
	if err != nil {
		return err
	}
	lease, err := locks.NewMutex(c, os.Getenv(pathVariable)).Lock(ctx)
	if err != nil {
		return err
	}
	h := &watchedHolder{c, lease}
	printLine("held", lease.Token())
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		if err := h.execute(ctx, orders.Text()); err != nil {
			return err
		}
	}
	return orders.Err()
}

func (h *watchedHolder) execute(ctx context.Context, order string) error {
	switch order {
	case "panic":
		panic("ordered by the test")
	case "exit":
		os.Exit(0)
	case "close":
		err := h.client.Close(ctx)
		printLine("closed", err)
		return err
	case "again": // holds again in the next session, after this one is lost
		<-h.lease.Context().Done()
		lease, err := locks.NewMutex(h.client, os.Getenv(pathVariable)).Lock(ctx)
		if err != nil {
			return err
		}
		h.lease = lease
		printLine("held", lease.Token())
	case "command":
		return h.startCommand(ctx)
	case "inherit":
		return startDescriptorHeir()
	case "write":
		printLine("writing", "now")
		return write(ctx, h.client, h.lease.Guard(), "late")
	case "work":
		return h.runLockCycles(ctx)
	}
	return nil
}

// startCommand runs a registered command with a child in its process group.
func (h *watchedHolder) startCommand(ctx context.Context) error {
	session, err := h.client.Session(ctx)
	if err != nil {
		return err
	}
	guard := session.GuardCommand()
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo $!; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	guard.Started(cmd.Process.Pid)
	worker, err := bufio.NewReader(out).ReadString('\n')
	printLine("command", fmt.Sprint(cmd.Process.Pid, " ", strings.TrimSpace(worker)))
	return err
}

// startDescriptorHeir starts a program that inherits every Unix socket of this process, the
// watchdog's among them, as a fork without close-on-exec does.
func startDescriptorHeir() error {
	cmd := exec.Command("sleep", "1000")
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, fd := range fds {
		var n int
		if _, err := fmt.Sscan(filepath.Base(fd), &n); err != nil {
			return err
		}
		if to, err := syscall.Getsockname(n); err != nil ||
			reflect.TypeOf(to) != reflect.TypeFor[*syscall.SockaddrUnix]() {
			continue
		}
		if copied, err := syscall.Dup(n); n > 2 && err == nil {
			cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(copied), fd))
		}
	}
	err = cmd.Start()
	printLine("inherited", cmd.Process.Pid)
	return err
}

// runLockCycles acquires and releases locks ten thousand times. The lease ends if the watchdog
// closes the session.
func (h *watchedHolder) runLockCycles(ctx context.Context) error {
	const cycles, goroutines = 10000, 16
	err := runConcurrently(goroutines, func(i int) error {
		m := locks.NewMutex(h.client, fmt.Sprintf("%s-%d", os.Getenv(pathVariable), i%4))
		for range cycles / goroutines {
			lease, err := m.Lock(ctx)
			if err != nil {
				return err
			}
			if err := lease.Release(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	printLine("worked", h.lease.Err() == nil)
	return errors.Join(err, h.lease.Err())
}
