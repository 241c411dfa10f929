package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/barrier"
	"github.com/lockstep-go/lockstep/internal/cli/check"
	"github.com/lockstep-go/lockstep/internal/cli/clean"
	"github.com/lockstep-go/lockstep/internal/cli/config"
	"github.com/lockstep-go/lockstep/internal/cli/cron"
	"github.com/lockstep-go/lockstep/internal/cli/dev"
	"github.com/lockstep-go/lockstep/internal/cli/doctor"
	"github.com/lockstep-go/lockstep/internal/cli/elect"
	"github.com/lockstep-go/lockstep/internal/cli/id"
	"github.com/lockstep-go/lockstep/internal/cli/lock"
	"github.com/lockstep-go/lockstep/internal/cli/members"
	"github.com/lockstep-go/lockstep/internal/cli/queue"
	"github.com/lockstep-go/lockstep/internal/cli/registry"
	"github.com/lockstep-go/lockstep/internal/cli/top"
	"github.com/lockstep-go/lockstep/internal/cli/ui"
	"github.com/lockstep-go/lockstep/internal/cli/watch"
	"github.com/lockstep-go/lockstep/internal/cli/workflow"
)

// runCommandLine runs a command line and returns the exit code. The end of ctx ends the command as
// a signal does if its cause is one.
func runCommandLine(ctx context.Context, streams *cli.Streams, args []string) int {
	root := newRoot(streams)
	unknownTopicsToErr(root, streams)
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return badFlag(cmd, err, args) })
	cmd, err := root.ExecuteContextC(ctx)
	return reportError(streams, cmd, err)
}

// unknownTopicsToErr lets "lockstep help" print to standard error if there is no such command.
func unknownTopicsToErr(root *cobra.Command, streams *cli.Streams) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return
	}
	run := help.Run
	help.Run = func(cmd *cobra.Command, args []string) {
		if _, _, err := root.Find(args); err != nil {
			root.SetOut(streams.Err)
		}
		run(cmd, args)
	}
}

const rootHelp = `Locks, elections, cron jobs, queues, barriers and configuration for a cluster, on Apache ZooKeeper.

A NAME is below /lockstep/locks, elections, jobs, queues, barriers, gates, latches, config, ids, services or
groups. A NAME that begins with / is the path of the znode itself. Locks, elections and gates have the layouts
of Apache Curator (InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreV2, LeaderLatch,
DistributedBarrier), so that Java programs can take part.

The command has the environment of lockstep without LOCKSTEP_AUTH (--keep-auth leaves it), and these variables:
  LOCKSTEP_TOKEN  the fencing token: it rises from holder to holder. Pass it to each system
                  that the command writes to, and let that system refuse lower tokens.
                  barrier: the number of the round; queue take: the same as LOCKSTEP_ATTEMPT
  LOCKSTEP_PATH   the path of the lock, election, job, queue, barrier or gate, below --root;
                  commas separate the paths of several locks
  LOCKSTEP_TICK   cron only: the scheduled time, RFC 3339 in UTC
  LOCKSTEP_HELD_LOCKS  lock only: the locks that are held around the command. A lockstep lock
                  within the command reads them to find deadlocks; a wrong or old value does no harm
  LOCKSTEP_ATTEMPT  cron and queue take: the number of the attempt at a tick or an item, from 1
  LOCKSTEP_KIND     queue take: the item's kind, or nothing
  LOCKSTEP_EVENT, LOCKSTEP_PROBLEM, LOCKSTEP_TEXT …  monitor --on-event: see lockstep monitor -h

Exit codes: the command's own, or 128 + n if signal n has ended it, and
`

const rootHelpAfterCodes = `

Signals: lockstep passes INT, TERM, QUIT and HUP to the command, and ends when the command has ended. Without a
command lockstep ends at once: with 0 if it runs until a signal (cron, elect, live top, ui, watch, monitor, dev,
register, queue take --follow, config watch, members --watch, lock without a command), with 128 + n if the
signal cut something short. lockstep also passes USR1, USR2 and WINCH to the command; without a command they
have no effect.

Environment variables with the defaults of flags, and with further settings: LOCKSTEP_SERVERS, LOCKSTEP_ROOT,
LOCKSTEP_SESSION_TIMEOUT, LOCKSTEP_IDENTITY, LOCKSTEP_AUTH_FILE or LOCKSTEP_AUTH
(user:password), LOCKSTEP_TLS_CA, LOCKSTEP_TLS_CERT, LOCKSTEP_TLS_KEY, and
LOCKSTEP_OBSERVER_MASTERS=true for an ensemble with observerMasterPort in a server's zoo.cfg.`

func newRoot(streams *cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "lockstep",
		Short: "Locks, elections, cron jobs, queues, barriers and configuration for a cluster, on Apache ZooKeeper",
		Long:  rootHelp + cli.ExitCodeHelp() + rootHelpAfterCodes,
		Example: `  lockstep dev &                                      an in-memory ZooKeeper to try things with
  lockstep lock deploy -- ./deploy.sh                 one at a time, in the whole cluster
  lockstep locks                                      who holds what, and who waits
  lockstep top                                        the same as it changes, and jobs, queues, workflows
  lockstep ui --open                                  a web page of all that, with what is wrong first
  lockstep elect billing -- ./billing-server          one leads, the others stand by
  lockstep cron report '0 3 * * *' -- ./report.sh     once a night, on one machine
  lockstep queue put mails ann bob                    work for any consumer
  lockstep queue take mails --follow -- ./send.sh     item by item, each until it is done
  lockstep workflows                                  runs in steps; start, cancel, retry, signal
  lockstep barrier enter phase -n 3 -- ./phase.sh     three at a time, together
  lockstep gate raise maintenance                     lockstep gate wait maintenance waits
  lockstep barriers                                   who is inside, how many are missing; gates, latch
  lockstep config set limits '{"rate":20}'            a value that programs follow; get, edit, watch, history
  lockstep id next orders                             numbers that are unique in the cluster
  lockstep register billing 10.0.0.7:8080             lockstep services, disable, enable
  lockstep members drain web web-1                    take a member out of service, and wait
  lockstep check                                      the problems, for a monitoring system
  lockstep monitor --on-event ./page.sh               reports when problems begin and end
  lockstep clean                                      nodes that no client uses any more; -y deletes them`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	for _, commands := range [][]*cobra.Command{lock.Commands(streams), elect.Commands(streams), cron.Commands(streams),
		barrier.Commands(streams), registry.Commands(streams), check.Commands(streams)} {
		root.AddCommand(commands...)
	}
	root.AddCommand(queue.Command(streams), workflow.Command(streams), config.Command(streams), id.Command(streams),
		members.Command(streams),
		doctor.Command(streams), clean.Command(streams), watch.Command(streams), top.Command(streams),
		ui.Command(streams), dev.Command(streams), newVersion(streams),
		newManual(streams))
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp) // most flags take no files
	cli.CompleteCommands(root)
	return root
}

// reportError prints an error and what to do next, and returns the exit code.
func reportError(streams *cli.Streams, cmd *cobra.Command, err error) int {
	if err == nil {
		return 0
	}
	var e *cli.ExitError
	if !errors.As(err, &e) {
		e = &cli.ExitError{Code: cli.ExitUsage, Reason: err}
	}
	if e.Code == cli.ExitUsage && e.Hint == "" {
		e.Hint = fmt.Sprintf("see %s --help", cmd.CommandPath())
	}
	if e.Reason != nil {
		streams.PrintError(cli.WithPermitted(cmd, inOneSentence(e.Reason)), e.Hint)
	}
	return e.Code
}

// inOneSentence joins the lines of cobra's error for an unknown subcommand, which has similar ones
// in lines of their own.
func inOneSentence(err error) error {
	text, similar, has := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	if !has {
		return err
	}
	return fmt.Errorf("%s; did you mean %s?", text, strings.Join(strings.Fields(similar), " or "))
}

// badFlag adds to the error of an unknown flag where the flags of the command belong.
func badFlag(cmd *cobra.Command, err error, args []string) error {
	if strings.Contains(cmd.Use, "COMMAND") && strings.HasPrefix(err.Error(), "unknown") &&
		!slices.Contains(args, "--") {
		return fmt.Errorf("%w; put -- before the command if the flag is the command's", err)
	}
	return err
}
