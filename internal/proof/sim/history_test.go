package sim

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// history is the list of events.
type history struct {
	began time.Time

	mu     sync.Mutex
	events []event
}

// event is one line of a history.
type event struct {
	at   time.Duration
	path string // of the workload, or "" if it concerns all
	text string
}

func (e event) String() string {
	return fmt.Sprintf("%11.6f  %-12s %s", e.at.Seconds(), e.path, e.text)
}

// protectedPrefix is the part of a protected node's name that is noise for a reader.
var protectedPrefix = regexp.MustCompile(`_c_[0-9a-f-]{36}-`)

func shorten(text string) string { return protectedPrefix.ReplaceAllString(text, "") }

func (h *history) add(scene, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event{time.Since(h.began), scene, text})
}

// all returns the events so far.
func (h *history) all() []event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events
}

// before returns the last n events up to the violation that concern its workload, or all workloads.
func (h *history) before(v violation, n int) []event {
	var out []event
	for _, e := range h.all() {
		if e.at > v.at {
			break
		}
		if v.path == "" || e.path == "" || e.path == v.path {
			out = append(out, e)
		}
	}
	return out[max(0, len(out)-n):]
}

// formatEvents formats events for a reader.
func formatEvents(events []event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(shorten(e.String()))
		b.WriteByte('\n')
	}
	return b.String()
}

// violation is a guarantee that was violated.
type violation struct {
	at   time.Duration
	path string
	rule string // the same for all violations of a kind
	text string
}

func (v violation) String() string {
	return shorten(fmt.Sprintf("%s %s at %.6f s: %s", v.path, v.rule, v.at.Seconds(), v.text))
}
