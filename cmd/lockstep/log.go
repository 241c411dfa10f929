package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
)

// plain is a log handler for people: it prints warnings as one line, the attributes as name=value.
type plain struct{ attrs string }

func (plain) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (p plain) Handle(_ context.Context, r slog.Record) error {
	line := r.Message + p.attrs
	r.Attrs(func(a slog.Attr) bool {
		line += attribute(a)
		return true
	})
	warn("%s", line)
	return nil
}

func (p plain) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		p.attrs += attribute(a)
	}
	return p
}

// WithGroup leaves groups out: nothing that logs here has any.
func (p plain) WithGroup(string) slog.Handler { return p }

func attribute(a slog.Attr) string {
	value := a.Value.Resolve().String()
	if strings.ContainsAny(value, " \t\n\"") {
		value = strconv.Quote(value)
	}
	return fmt.Sprintf(" %s=%s", a.Key, value)
}
