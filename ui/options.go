package ui

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Option changes what New returns.
type Option func(*settings) error

// canAct reports whether pages may have buttons.
func (s settings) canAct() bool { return s.actions || s.authorize != nil }

// settings are what options change.
type settings struct {
	root      string
	interval  time.Duration
	zone      *time.Location
	hosts     []string
	actions   bool
	hideData  bool
	authorize func(*http.Request, Action) error
	user      func(*http.Request) string
	examine   func(context.Context) ([]Check, error)
}

// WithRoot shows what is at and below a path. Default "/": all that the client can see.
func WithRoot(path string) Option {
	return func(s *settings) error {
		if path != "/" {
			if err := framework.ValidatePath(path); err != nil {
				return err
			}
		}
		s.root = path
		return nil
	}
}

// WithInterval sets the time between two scans while a page is open: 250 ms to an hour. The hub
// scans after a quarter of it if a lock, an election or what a page is about has changed. It waits
// longer if a scan takes long, so that it sends requests for at most half of the time. Default 1 s.
func WithInterval(d time.Duration) Option {
	return func(s *settings) error {
		if d < 250*time.Millisecond || d > time.Hour {
			return fmt.Errorf("the interval is %v: give 250 ms to an hour", d)
		}
		s.interval = d
		return nil
	}
}

// WithZone sets the time zone of all times on the pages. Default time.Local.
func WithZone(zone *time.Location) Option {
	return func(s *settings) error {
		if zone == nil {
			return fmt.Errorf("the zone is nil")
		}
		s.zone = zone
		return nil
	}
}

// WithHosts adds host names, without ports, to which the page answers. Requests for other names
// than these, localhost and IP addresses are refused: otherwise a foreign site could point its own
// name at the page's address and read it in a visitor's browser.
func WithHosts(names ...string) Option {
	return func(s *settings) error {
		for _, name := range names {
			if name == "" || strings.ContainsAny(name, ":/ ") {
				return fmt.Errorf("%q is no host name: give it without a port", name)
			}
			s.hosts = append(s.hosts, strings.ToLower(name))
		}
		return nil
	}
}

// WithActions permits actions: revoking a lock, transferring a lead, running, pausing and resuming
// a job, pausing and resuming a queue, putting back and deleting its dead letters, cancelling,
// retrying and signalling a workflow's run, cordoning and draining a member, rolling back a value.
// The client's logger has a record of each: what, where, at what state, who (WithUser), from which
// address. Default: pages only show the commands that do the same.
func WithActions() Option {
	return func(s *settings) error {
		s.actions = true
		return nil
	}
}

// WithHideData hides what applications have written, on pages, in their JSON and in streams: data
// and headers of items, data of locks, metadata, descriptions of jobs, inputs and results of
// workflows, and texts of errors. Paths, owners, hosts and the ids of items and runs stay.
func WithHideData() Option {
	return func(s *settings) error {
		s.hideData = true
		return nil
	}
}

// WithAuthorize has a function decide on each request: its error refuses it with status 403, and
// its text is shown. The action is ActionView for a page; it is asked about an action before the
// confirmation, and again before it is done. Actions are permitted as by WithActions, if the
// function permits them. The function is called at once by many goroutines.
func WithAuthorize(authorize func(*http.Request, Action) error) Option {
	return func(s *settings) error {
		if authorize == nil {
			return fmt.Errorf("the function is nil")
		}
		s.authorize = authorize
		return nil
	}
}

// WithUser has a function name who sends a request, for the records of actions: such as the name
// that an authenticating proxy has put into a header. Default, and where it returns "": the remote
// address. The function is called at once by many goroutines, only for actions.
func WithUser(user func(*http.Request) string) Option {
	return func(s *settings) error {
		if user == nil {
			return fmt.Errorf("the function is nil")
		}
		s.user = user
		return nil
	}
}

// WithExamination has a function examine the cluster when a visitor asks for it: its page shows the
// checks, and the error that has ended them. The function is not called by two goroutines at once.
// Its context ends after a minute, or when the visitor has gone. WithAuthorize is asked for
// ActionExamine. Default: the page names the command to run instead.
func WithExamination(examine func(context.Context) ([]Check, error)) Option {
	return func(s *settings) error {
		if examine == nil {
			return fmt.Errorf("the function is nil")
		}
		s.examine = examine
		return nil
	}
}
