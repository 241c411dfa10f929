package ui

import (
	"maps"
	"slices"

	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// What WithHideData hides is taken out where it has been read. So no page, JSON or stream has it.

// hiddenText stands for texts that are hidden.
const hiddenText = "hidden"

// hideReport hides data in what a scan has read, and in the texts of findings that repeat errors.
func hideReport(r *monitor.Report) {
	for i, l := range r.Locks {
		r.Locks[i] = hideLock(l)
	}
	for i := range r.Jobs {
		job := &r.Jobs[i]
		job.Description = ""
		job.Running, job.Abandoned = hideRecords(job.Running), hideRecords(job.Abandoned)
		if job.LastRun != nil {
			job.LastRun = &hideRecords([]scheduler.RunRecord{*job.LastRun})[0]
		}
		job.Findings = slices.Clone(job.Findings)
		for k := range job.Findings {
			if job.Findings[k].Problem == scheduler.ProblemFailed {
				job.Findings[k].Text = "the latest run failed; its error is hidden"
			}
		}
	}
	for i := range r.Queues {
		if last := &r.Queues[i].Retried.LastError; *last != "" {
			*last = hiddenText
		}
	}
	for i := range r.Runs {
		hideRun(&r.Runs[i])
	}
	for i := range r.Findings {
		switch f := &r.Findings[i]; f.Problem {
		case monitor.Problem(scheduler.ProblemFailed):
			f.Text = "the latest run failed; its error is hidden"
		case monitor.ProblemFailingItem:
			f.Text = "an item has come back again and again; its error is hidden"
		case monitor.ProblemFailedRuns:
			f.Text = "runs have failed; their errors are hidden"
		}
	}
}

func hideLock(r locks.Report) locks.Report {
	for _, entries := range []*[]locks.Entry{&r.Holders, &r.Waiters, &r.Others} {
		*entries = slices.Clone(*entries)
		for i := range *entries {
			(*entries)[i].Data = ""
		}
	}
	return r
}

func hideCandidates(all []election.Candidate) []election.Candidate {
	for i := range all {
		all[i].Metadata = nil
	}
	return all
}

func hideRecords(runs []scheduler.RunRecord) []scheduler.RunRecord {
	runs = slices.Clone(runs)
	for i := range runs {
		if runs[i].Error != "" {
			runs[i].Error = hiddenText
		}
	}
	return runs
}

func hideItems(held []queue.InFlightItem, dead []queue.DeadLetter) {
	for i := range held {
		held[i].Data = nil
	}
	for i := range dead {
		dead[i].Data, dead[i].Headers = nil, nil
		if dead[i].LastError != "" {
			dead[i].LastError = hiddenText
		}
	}
}

func hideGroup(r *sharedreport.Group) {
	hideCordon := func(c *members.Cordon) {
		c.Answers = maps.Clone(c.Answers)
		for node, a := range c.Answers {
			if a.Error != "" {
				a.Error = hiddenText
				c.Answers[node] = a
			}
		}
	}
	for i := range r.Members {
		r.Members[i].Info.Metadata = nil
		if c := r.Members[i].Cordon; c != nil {
			hidden := *c
			hideCordon(&hidden)
			r.Members[i].Cordon = &hidden
		}
	}
	for i := range r.Absent {
		hideCordon(&r.Absent[i])
	}
}

func hideInstances(all []registry.Instance) {
	for i := range all {
		all[i].Metadata, all[i].Payload = nil, nil
		if all[i].Disabled != "" { // it may repeat the error of a check
			all[i].Disabled = hiddenText
		}
	}
}

func hideRecordsOfValue(records []config.Record) {
	for i := range records {
		records[i].Data = []byte(hiddenText)
		if records[i].Note != "" {
			records[i].Note = hiddenText
		}
	}
}

func hideRun(run *workflow.Report) {
	run.Input, run.Result = nil, nil
	if run.Error != "" {
		run.Error = hiddenText
	}
	run.Steps = slices.Clone(run.Steps)
	for i := range run.Steps {
		run.Steps[i].Result = nil
		if run.Steps[i].Error != "" {
			run.Steps[i].Error = hiddenText
		}
	}
}
