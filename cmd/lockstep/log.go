package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
)

// plainWords replace messages of the client's log: at the begin of an interruption, with how long holds still last, at its end, and when the servers
// grant another session timeout than the configured one. Each text is made of the record's attributes.
var plainWords = map[string]func(attributes map[string]string) string{
	"no server can be used": func(a map[string]string) string {
		line := "no server can be reached (" + a["servers"] + ")"
		if left := a["holds_stand_for"]; left != "" {
			line += ": what is held stands for another " + left
		}
		return line
	},
	outageOver: func(a map[string]string) string {
		return fmt.Sprintf("%s can be reached again, after %s", a["server"], a["after"])
	},
	"session lost": func(a map[string]string) string {
		return "the session and all that it held is lost: " + a["cause"]
	},
	"the servers grant a shorter session timeout": func(a map[string]string) string {
		return fmt.Sprintf("the servers grant a session timeout of %s instead of %s: what is held survives interruptions of %s only; raise their maxSessionTimeout, or ask for less with --session-timeout",
			a["granted"], a["asked"], a["survived"])
	},
}

// outageOver is what the client logs at the end of an outage, whose beginning it warns of. People want to know both.
const outageOver = "a server can be used again"

// findingBegins is what a monitor logs when it tells of a finding. lockstep monitor prints it as a result.
const findingBegins = "a finding begins"

// peopleLogHandler is a log handler for people: it prints warnings, and that an outage is over, as one line, in plain words or with the attributes as name=value.
type peopleLogHandler struct{ attrs []slog.Attr }

func (peopleLogHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

func (p peopleLogHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn && r.Message != outageOver || r.Message == findingBegins {
		return nil
	}
	line, attributes := r.Message, map[string]string{}
	add := func(a slog.Attr) bool {
		line += formatAttribute(a)
		attributes[a.Key] = a.Value.Resolve().String()
		return true
	}
	for _, a := range p.attrs {
		add(a)
	}
	r.Attrs(add)
	if inWords, ok := plainWords[r.Message]; ok {
		line = inWords(attributes)
	}
	if r.Level < slog.LevelWarn {
		printNotice("%s", line)
	} else {
		printWarning("%s", line)
	}
	return nil
}

func (p peopleLogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return peopleLogHandler{append(p.attrs[:len(p.attrs):len(p.attrs)], attrs...)}
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
