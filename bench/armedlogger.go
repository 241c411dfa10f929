package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// armedLogger returns a logger that sends a line when a watchdog is armed: its process id, and how
// many nanoseconds the arming took.
func armedLogger(armed chan<- string) *slog.Logger { return slog.New(watchdogLog{armed}) }

type watchdogLog struct{ armed chan<- string }

func (watchdogLog) Enabled(context.Context, slog.Level) bool { return true }

func (h watchdogLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "watchdog armed" {
		return nil
	}
	var pid int64
	var took time.Duration
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "pid":
			pid = a.Value.Int64()
		case "after":
			took = a.Value.Duration()
		}
		return true
	})
	select {
	case h.armed <- fmt.Sprint(pid, int64(took)):
	default: // another attribute
	}
	return nil
}

func (h watchdogLog) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h watchdogLog) WithGroup(string) slog.Handler { return h }
