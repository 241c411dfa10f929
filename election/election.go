package election

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// Election is an election at a path of its own. Several may be made for one path, and each may be used by
// many goroutines at once; each campaign is a candidate.
type Election struct {
	client *framework.Client
	path   string
	err    error // of the arguments

	id       string
	kind     locks.Kind
	metadata Metadata
	priority int
	stable   time.Duration
	health   *healthCheck
	minTerm  time.Duration
	maxTerm  time.Duration
	stepDown StepDown

	line    *locks.Line
	waiting *Group // what candidates that wait tell of themselves
	tel     telemetry
	current atomic.Pointer[Term]
}

// New returns an election at path. Nothing is created before it is used. An argument that cannot be
// used makes every call return an error that says so.
func New(client *framework.Client, path string, opts ...Option) *Election {
	e := &Election{client: client, path: path, kind: locks.LatchKind}
	if e.err = checkClientAndPath(client, path); e.err != nil {
		return e
	}
	e.id = client.Config().Identity
	e.err = e.applyOptions(opts)
	e.line = e.newLine()
	e.waiting = NewGroup(client, path+waitingSuffix)
	e.tel = newTelemetry(client)
	return e
}

// Validate returns what is wrong with options, or nil, before there is a client to use them with.
func Validate(opts ...Option) error { return new(Election).applyOptions(opts) }

func (e *Election) applyOptions(opts []Option) error {
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(e); err != nil {
			return err
		}
	}
	if e.maxTerm > 0 && e.maxTerm < e.minTerm {
		return fmt.Errorf("WithMaxTerm: %v is less than WithMinTerm's %v", e.maxTerm, e.minTerm)
	}
	return nil
}

// What lies beside the line, never in its directory: Apache Curator takes all children there for
// contenders.
const (
	termSuffix    = "~term"
	waitingSuffix = "~waiting"
)

func (e *Election) newLine(opts ...locks.Option) *locks.Line {
	return locks.NewLine(e.client, e.path, e.kind, append(opts, locks.WithData([]byte(e.id)))...)
}

// checkClientAndPath refuses a client or a path that nothing can be made of.
func checkClientAndPath(client *framework.Client, path string) error {
	if client == nil {
		return errors.New("the client is nil")
	}
	if err := framework.ValidatePath(path); err != nil {
		return err
	}
	if path == "/" {
		return fmt.Errorf("%w %q: the root cannot be an election or a group", framework.ErrInvalidPath, path)
	}
	return nil
}

// Err says what is wrong with the arguments of New, or is nil. The other methods return it, too.
func (e *Election) Err() error { return e.err }

// Path is the election's directory.
func (e *Election) Path() string { return e.path }

// ID is what this election's candidates are called.
func (e *Election) ID() string { return e.id }

// Term is the term in which a candidate of this value leads, or nil. It asks nobody.
func (e *Election) Term() *Term {
	if t := e.current.Load(); t != nil && t.Err() == nil {
		return t
	}
	return nil
}
