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
	"strings"
	"syscall"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// watchedVariable makes the test binary a process that holds a lock, with a watchdog.
const watchedVariable = "LOCKSTEP_FAULTS_WATCHED"

// announcer is a log handler that says when a watchdog is armed.
type announcer struct{}

func (announcer) Enabled(context.Context, slog.Level) bool { return true }
func (announcer) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "watchdog armed" {
		r.Attrs(func(a slog.Attr) bool {
			say(map[string]string{"pid": "armed", "after": "took"}[a.Key], a.Value)
			return true
		})
	}
	return nil
}
func (h announcer) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h announcer) WithGroup(string) slog.Handler      { return h }

// watched is the holder.
type watched struct {
	client *framework.Client
	lease  *locks.Lease
}

// playWatched holds the lock and does what it is told, a line each; false if it was not asked to.
func playWatched() bool {
	if os.Getenv(watchedVariable) == "" {
		return false
	}
	if err := holdWatched(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func holdWatched(ctx context.Context) error {
	cfg, err := framework.ConfigFromEnv()
	if err != nil {
		return err
	}
	c, err := framework.Connect(ctx, cfg, framework.WithWatchdog(), framework.WithLogger(slog.New(announcer{})))
	if err != nil {
		return err
	}
	lease, err := locks.NewMutex(c, os.Getenv(pathVariable)).Lock(ctx)
	if err != nil {
		return err
	}
	w := &watched{c, lease}
	say("held", lease.Token())
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		if err := w.obey(ctx, orders.Text()); err != nil {
			return err
		}
	}
	return orders.Err()
}

func (w *watched) obey(ctx context.Context, order string) error {
	switch order {
	case "panic":
		panic("as told")
	case "exit":
		os.Exit(0)
	case "close":
		err := w.client.Close(ctx)
		say("closed", err)
		return err
	case "again": // holds in the next session, once this one is lost
		<-w.lease.Context().Done()
		lease, err := locks.NewMutex(w.client, os.Getenv(pathVariable)).Lock(ctx)
		if err != nil {
			return err
		}
		w.lease = lease
		say("held", lease.Token())
	case "command":
		return w.command(ctx)
	case "inherit":
		return inherit()
	case "write":
		say("writing", "now")
		return write(ctx, w.client, w.lease.Guard(), "late")
	case "work":
		return w.work(ctx)
	}
	return nil
}

// command runs one that is registered, with a worker in its group.
func (w *watched) command(ctx context.Context) error {
	session, err := w.client.Session(ctx)
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
	say("command", fmt.Sprint(cmd.Process.Pid, " ", strings.TrimSpace(worker)))
	return err
}

// inherit starts a program that has a copy of every pipe of this process, as if it had been forked by somebody who
// does not know of close-on-exec.
func inherit() error {
	cmd := exec.Command("sleep", "1000")
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err != nil || !strings.HasPrefix(to, "pipe:") {
			continue
		}
		var n int
		if _, err := fmt.Sscan(filepath.Base(fd), &n); err != nil {
			return err
		}
		if copied, err := syscall.Dup(n); n > 2 && err == nil {
			cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(copied), fd))
		}
	}
	err = cmd.Start()
	say("inherited", cmd.Process.Pid)
	return err
}

// work is a load of ten thousand cycles; the lease stands if nobody closes its session meanwhile.
func (w *watched) work(ctx context.Context) error {
	const cycles, goroutines = 10000, 16
	err := together(goroutines, func(i int) error {
		m := locks.NewMutex(w.client, fmt.Sprintf("%s-%d", os.Getenv(pathVariable), i%4))
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
	say("worked", w.lease.Err() == nil)
	return errors.Join(err, w.lease.Err())
}
