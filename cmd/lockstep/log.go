package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
)

// outageOver is what the client logs at the end of an outage, whose beginning it warns of. People want to know both.
const outageOver = "a server can be used again"

// peopleLogHandler is a log handler for people: it prints warnings, and that an outage is over, as one line, the attributes as name=value.
type peopleLogHandler struct{ attrs string }

func (peopleLogHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

func (p peopleLogHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn && r.Message != outageOver {
		return nil
	}
	line := r.Message + p.attrs
	r.Attrs(func(a slog.Attr) bool {
		line += formatAttribute(a)
		return true
	})
	if r.Level < slog.LevelWarn {
		printNotice("%s", line)
	} else {
		printWarning("%s", line)
	}
	return nil
}

func (p peopleLogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		p.attrs += formatAttribute(a)
	}
	return p
}

// WithGroup leaves groups out: nothing that logs here has any.
func (p peopleLogHandler) WithGroup(string) slog.Handler { return p }

func formatAttribute(a slog.Attr) string {
	value := a.Value.Resolve().String()
	if strings.ContainsAny(value, " \t\n\"") {
		value = strconv.Quote(value)
	}
	return fmt.Sprintf(" %s=%s", a.Key, value)
}
