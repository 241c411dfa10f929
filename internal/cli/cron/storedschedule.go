package cron

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/scheduler"
)

// storedSchedule follows the schedule that is stored for a job. Two command lines that give one
// NAME different schedules replace each other's: each process warns when the schedule is not, or no
// longer, the one that it was started with.
type storedSchedule struct {
	cron *cronCommand
	jobs *scheduler.Scheduler
	job  string

	command string // of this process, as describeCommand describes it
	known   string // the schedule that was seen last, or ""

	looked       bool   // the state was read before
	knownCommand string // the last command that was warned about
}

// warnIfChanged reads the schedule and warns if it has changed since the last call. The first call
// compares it with that of this process.
func (s *storedSchedule) warnIfChanged(ctx context.Context) error {
	state, err := s.jobs.State(ctx, s.job)
	if errors.Is(err, framework.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	s.warnIfCommandDiffers(state)
	own := fmt.Sprintf("%q in %s", s.cron.schedule.String(), s.cron.schedule.Zone())
	stored := fmt.Sprintf("%q in %s", state.Spec, cli.InOneLine(state.Zone))
	switch {
	case stored == own, stored == s.known:
	case s.known != "":
		s.cron.PrintWarning("the schedule of %s is now %s instead of %s: a process with another schedule has "+
			"replaced it for all", s.cron.Path, stored, s.known)
	case state.Revision > s.cron.revision:
		s.cron.PrintWarning("the schedule of %s stays %s, of revision %d, and this process follows it: --revision %d or "+
			"more replaces it by %s",
			s.cron.Path, stored, state.Revision, state.Revision, own)
	default:
		s.cron.PrintWarning("the schedule of %s was %s: this process replaces it by %s for all", s.cron.Path, stored,
			own)
	}
	s.known = stored
	return nil
}

// warnIfCommandDiffers warns once of each stored command that differs from that of this process.
func (s *storedSchedule) warnIfCommandDiffers(state scheduler.State) {
	own, stored := s.command, state.Description
	first := !s.looked
	s.looked = true
	switch {
	case stored == "" || stored == own || stored == s.knownCommand:
		return
	case first:
		s.cron.PrintWarning("the command of %s was %s: this process runs %s instead, and others may still run the former",
			s.cron.Path, cli.InOneLine(stored), own)
	default:
		s.cron.PrintWarning("another process has registered %s with the command %s: this one runs %s", s.cron.Path,
			cli.InOneLine(stored), own)
	}
	s.knownCommand = stored
}

// printNextTick prints that this process runs the command now, and when it runs next by the stored
// schedule, which may differ from this process's own.
func (s *storedSchedule) printNextTick(ctx context.Context, now time.Time) {
	state, err := s.jobs.State(ctx, s.job)
	next := state.Next(now)
	switch {
	case err == nil && !state.Paused.IsZero():
		s.cron.PrintNotice("this process runs %s once it is resumed: it is paused", s.cron.Path)
	case err == nil && !next.IsZero():
		s.cron.PrintNotice("this process runs %s, next at %s", s.cron.Path, next.Format(time.RFC3339))
	default:
		s.cron.PrintNotice("this process runs %s", s.cron.Path)
	}
}

// followChanges compares again after each change, until ctx ends.
func (s *storedSchedule) followChanges(ctx context.Context) {
	for _, err := range s.cron.Client.Follow(ctx, joblayout.Scheduler(s.cron.Path).Changes()) {
		for err == nil && ctx.Err() == nil && s.warnIfChanged(ctx) != nil { // the scheduler reports an error that lasts
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
}
