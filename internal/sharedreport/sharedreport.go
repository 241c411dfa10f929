// Package sharedreport has the reports that the command line prints with --json and the web page
// serves with .json, where a report joins what several calls have read. Each has its JSON form here
// only. It also has the words in which both say with which credentials they connected.
package sharedreport

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// Election is an election.
type Election struct {
	Path       string               `json:"path"`
	Candidates []election.Candidate `json:"candidates"` // the leader first
}

// NewElection returns the report of an election with these candidates.
func NewElection(path string, candidates []election.Candidate) Election {
	return Election{path, append([]election.Candidate{}, candidates...)}
}

// Group is a group of members.
type Group struct {
	Path    string           `json:"path"`
	Members []members.Member `json:"members"`
	Absent  []members.Cordon `json:"absent,omitempty"` // cordons of members that are not there
}

// NewGroup returns the report of a group.
func NewGroup(path string, view members.View) Group {
	g := Group{Path: path, Members: append([]members.Member{}, view.Members...)}
	for _, c := range view.Cordons {
		if !slices.ContainsFunc(view.Members, func(m members.Member) bool { return m.ID == c.ID }) {
			g.Absent = append(g.Absent, c)
		}
	}
	return g
}

// Service is a service with its instances.
type Service struct {
	Path      string              `json:"path"`
	Enabled   int                 `json:"enabled"`
	Instances []registry.Instance `json:"instances"`
}

// NewService returns the report of a service.
func NewService(path string, instances []registry.Instance) Service {
	s := Service{Path: path, Instances: append([]registry.Instance{}, instances...)}
	for _, i := range instances {
		if i.Disabled == "" {
			s.Enabled++
		}
	}
	return s
}

// Value is a configuration value in a list.
type Value struct {
	Path    string    `json:"path"`
	Version int64     `json:"version"` // 0 if the value was deleted
	Written time.Time `json:"written,omitzero"`
	Bytes   int32     `json:"bytes"`
}

// NewValue returns the report of a value whose node has this stat.
func NewValue(path string, stat framework.Stat) Value {
	return Value{path, stat.Mzxid, reportjson.Time(stat.Mtime), stat.DataLength}
}

// NewRecord returns a value of the history of a path, as JSON.
func NewRecord(path string, r config.Record) reportjson.Joined {
	return reportjson.Joined{struct {
		Path string `json:"path"`
	}{path}, r}
}

// maxTicks is how many of a job's next ticks NextTicks returns.
const maxTicks = 10

// NextTicks returns a job's next ticks, in its zone.
func NextTicks(r scheduler.Report) (ticks []time.Time) {
	for t := r.Next(r.At); !t.IsZero() && len(ticks) < maxTicks; t = r.Next(t) {
		ticks = append(ticks, t)
	}
	return ticks
}

// NewJob returns a job with its next ticks and its latest runs, as JSON.
func NewJob(r scheduler.Report, runs []scheduler.RunRecord) reportjson.Joined {
	return reportjson.Joined{r, struct {
		NextTicks []time.Time           `json:"next_ticks,omitempty"`
		Runs      []scheduler.RunRecord `json:"runs,omitempty"`
	}{NextTicks(r), runs}}
}

const (
	maxRunsWithSteps = 1000 // runs whose steps AddSteps reads
	readRunsAtOnce   = 16
)

// AddSteps reads the steps of runs that are not done and that List has returned. It leaves a run as
// it is that has changed meanwhile. left is the number of runs whose steps it has not read, because
// there are too many.
func AddSteps(ctx context.Context, client *framework.Client, runs []workflow.Report) (left int, err error) {
	at := map[string]*workflow.Workflows{}
	defer func() {
		for _, w := range at {
			_ = w.Close(ctx) // it has put nothing
		}
	}()
	errs := make([]error, len(runs))
	slots := make(chan struct{}, readRunsAtOnce)
	var reading sync.WaitGroup
	read := 0
	for i, listed := range runs {
		switch {
		case listed.State == workflow.Done:
			continue
		case read == maxRunsWithSteps:
			left++
			continue
		}
		read++
		if at[listed.Path] == nil {
			at[listed.Path] = workflow.New(client, listed.Path)
		}
		w := at[listed.Path]
		slots <- struct{}{}
		reading.Go(func() {
			defer func() { <-slots }()
			inspected, err := moduleonly.InspectSteps(ctx, w, listed.ID) // List has read Taken
			full, _ := inspected.(workflow.Report)
			switch {
			case err == nil && full.State == listed.State && full.Changed.Equal(listed.Changed):
				full.Taken, full.TakenErr = listed.Taken, listed.TakenErr
				runs[i] = full
			case err == nil || errors.Is(err, framework.ErrNotFound): // it has changed since it was listed
			default:
				errs[i] = err
			}
		})
	}
	reading.Wait()
	return left, errors.Join(errs...)
}

// Credentials says which credentials a client presents, as scheme:id. It leaves out secrets, and
// ids that may be secrets.
func Credentials(cfg framework.Config) string {
	var all []string
	for _, c := range cfg.Auth {
		id := c.Scheme
		if user, _, found := strings.Cut(string(c.Auth), ":"); found && c.Scheme == "digest" {
			id += ":" + user
		}
		all = append(all, id)
	}
	if cfg.TLS != nil && len(cfg.TLS.Certificates) > 0 {
		id := "x509"
		if leaf := cfg.TLS.Certificates[0].Leaf; leaf != nil {
			id += ":" + leaf.Subject.String()
		}
		all = append(all, id)
	}
	if len(all) == 0 {
		return "without credentials"
	}
	return "with the credentials " + strings.Join(all, " and ")
}
