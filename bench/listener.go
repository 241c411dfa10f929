package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// listener is a log handler that reports armed watchdogs: process id, and nanoseconds until armed.
func listener(armed chan<- string) *slog.Logger { return slog.New(watchdogLog{armed}) }

type watchdogLog struct{ armed chan<- string }

func (watchdogLog) Enabled(context.Context, slog.Level) bool { return true }

func (e watchdogLog) Handle(_ context.Context, r slog.Record) error {
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
	case e.armed <- fmt.Sprint(pid, int64(took)):
	default: // another attribute
	}
	return nil
}

func (e watchdogLog) WithAttrs([]slog.Attr) slog.Handler { return e }

func (e watchdogLog) WithGroup(string) slog.Handler { return e }
