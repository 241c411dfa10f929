// Package workflow has the subcommands of workflows.
package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/workflow"
)

// workflowsCommand is what "workflows" and its subcommands have in common.
type workflowsCommand struct {
	cli.ConnectionFlags
	client    *framework.Client
	workflows map[string]*workflow.Workflows // by path
}

// useWorkflows does one thing with workflows. path is that of the workflows which an error
// concerns, or "".
func (p *workflowsCommand) useWorkflows(cmd *cobra.Command, path string, do func(context.Context) error) (err error) {
	if p.client, err = p.ConnectClient(cmd); err != nil {
		return err
	}
	defer cli.CloseClient(p.Streams, p.client)
	p.workflows = map[string]*workflow.Workflows{}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), cli.CloseTimeout)
		defer cancel()
		for _, w := range p.workflows {
			if err := w.Close(ctx); err != nil {
				p.PrintWarning("%v", err)
			}
		}
	}()
	return withListHint(do(cmd.Context()), path)
}

// at returns the workflows at a path.
func (p *workflowsCommand) at(path string) *workflow.Workflows {
	if p.workflows[path] == nil {
		p.workflows[path] = workflow.New(p.client, path)
	}
	return p.workflows[path]
}

// withListHint adds to the error that a run is missing how to list the runs at a path.
func withListHint(err error, path string) error {
	list := "lockstep workflows"
	if path != "" && path != DefaultWorkflows {
		list += " " + cli.ShellWord(path)
	}
	return cli.WithHint(err, framework.ErrNotFound,
		"see which there are: "+list+"; of other workflows: lockstep workflows /")
}

// workflowsFilter says which runs are listed.
type workflowsFilter struct {
	kinds  []string
	states []string
}

// runStates are the states of runs.
var runStates = []string{string(workflow.Active), string(workflow.Waiting), string(workflow.Done),
	string(workflow.Failed), string(workflow.Cancelled)}

func (f workflowsFilter) check() error {
	for _, state := range f.states {
		if !slices.Contains(runStates, state) {
			return cli.UsageError("--state %q: want one of %v", state, runStates)
		}
	}
	return nil
}

func (f workflowsFilter) isEmpty() bool { return len(f.kinds) == 0 && len(f.states) == 0 }

func (f workflowsFilter) matches(run workflow.Report) bool {
	return (len(f.kinds) == 0 || slices.Contains(f.kinds, run.Kind)) &&
		(len(f.states) == 0 || slices.Contains(f.states, string(run.State)))
}

// Command shows the runs of workflows; its subcommands control them.
func Command(streams *cli.Streams) *cobra.Command {
	p := &workflowsCommand{}
	var filter workflowsFilter
	cmd := &cobra.Command{
		Use:   "workflows [RUN] [flags]",
		Short: "Show and control runs of workflows",
		Long: `Show the runs of workflows (workflow.Workflows), the oldest first: kind, state, since when, the last step that
has a record, how many attempts have failed since the run last waited, what it waits for, the session and
the identity of the member that has it (host and process, unless it has another name), and the error of the
latest attempt or of the end. The step under way is not stored: it follows the last one that has a record.
A member that has died is shown until the servers end its session.

A RUN is the path of its workflows, as given to workflow.New, and its ID: /orders/order-42. The runs of the workflows
at /lockstep/workflows are named by their IDs alone. With a path of workflows lockstep lists their runs, with any
other path those of all workflows below it.

With a RUN lockstep shows one run with its steps. It draws the steps of a graph (workflow.NewGraph): which are
done, which are under way, and which wait for others. If the ID is also that of a subcommand, give it after --.

Finished runs are shown until their retention time is over: by default 14 days for failed runs, 24 hours for others.
--json prints inputs and results as they are stored, and steps: those of runs that are done only with a RUN.`,
		Example: `  lockstep workflows
  lockstep workflows /                             those of all workflows
  lockstep workflows /orders --state failed --kind order
  lockstep workflows order-42                      one run, with its steps
  lockstep workflows /orders/order-42              one of a program's own workflows
  lockstep workflows start order order-42 '{"total":12}'
  lockstep workflows signal order-42 delivered '{"parcel":7}'
  lockstep workflows retry order-42                after its members have failed`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		if err := filter.check(); err != nil {
			return err
		}
		shown := strings.Join(args, "")
		switch isPath := strings.HasPrefix(shown, "/"); {
		case isPath && shown != "/" && framework.ValidatePath(shown) != nil:
			return cli.UsageError("the path %q cannot be used: %w", shown, framework.ValidatePath(shown))
		case len(args) > 0 && !isPath && !filter.isEmpty():
			return errNoList
		}
		path, _, _ := parseRun(shown)
		return cli.EndBySignal(cmd.Context(), p.useWorkflows(cmd, path, func(ctx context.Context) error {
			if len(args) == 0 {
				return p.listRuns(ctx, []string{DefaultWorkflows}, nil, filter)
			}
			return p.show(ctx, shown, filter)
		}))
	})
	p.AddConnectionFlags(streams, cmd)
	cmd.Flags().StringSliceVar(&filter.kinds, "kind", nil, "list runs of these kinds only")
	cmd.Flags().StringSliceVar(&filter.states, "state", nil,
		"list runs in these states only: active, waiting, done, failed, cancelled")
	cli.OfferValues(cmd, "state", runStates...)
	cmd.ValidArgsFunction = completeRunIDs
	cmd.AddCommand(newWorkflowsStart(streams), newWorkflowsCancel(streams), newWorkflowsRetry(streams),
		newWorkflowsRequeue(streams), newWorkflowsSignal(streams), newWorkflowsRemove(streams))
	return cmd
}

// errNoList says that the options of a list were given for one run.
var errNoList = cli.UsageError("--kind and --state are for the list, and not for one run")

// show shows a run, or lists the runs at and below a path.
func (p *workflowsCommand) show(ctx context.Context, name string, filter workflowsFilter) error {
	path, id, _ := parseRun(name)
	if !strings.HasPrefix(name, "/") {
		return p.showRun(ctx, path, id)
	}
	isRun, paths, unread := findWorkflows(ctx, p.client, name)
	switch {
	case isRun && !filter.isEmpty():
		return errNoList
	case isRun:
		return p.showRun(ctx, path, id)
	case len(paths) == 0 && unread != nil:
		return unread
	case len(paths) == 0 && name != "/":
		return cli.NothingFoundError(ctx, p.Streams, p.client, "runs of workflows", name, "lockstep workflows /")
	}
	return p.listRuns(ctx, paths, unread, filter)
}

// listRuns prints the runs at some paths that match. What cannot be read is warned about, and
// decides the exit code. unread is the error of what was not searched.
func (p *workflowsCommand) listRuns(ctx context.Context, paths []string, unread error, filter workflowsFilter) error {
	var runs []workflow.Report
	var errs []error
	for _, path := range paths {
		infos, err := failure.Collect(p.at(path).List(ctx))
		if infos == nil && err != nil && len(paths) == 1 {
			return err
		}
		errs = append(errs, failure.SplitJoined(err)...)
		runs = append(runs, infos...)
	}
	stored := len(runs)
	runs = slices.DeleteFunc(runs, func(run workflow.Report) bool { return !filter.matches(run) })
	if unread != nil {
		p.PrintWarning("%v", unread)
	}
	if unreadSteps := p.addSteps(ctx, runs); unreadSteps != nil {
		unread = unreadSteps
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, err := range errs {
		if err != nil {
			p.PrintWarning("a run cannot be read: %v", err)
			unread = codeOfUnread(err)
		}
	}
	if warned := warnOfTaken(p.Streams, runs); warned != nil {
		unread = warned
	}
	if p.JSON {
		for _, run := range runs {
			if err := cli.PrintResult(p.Out, true, run); err != nil {
				return err
			}
		}
		return cli.ExitCodeOfPrinted(p.Streams, unread)
	}
	if err := workflowTable(runs, time.Now()).PrintTo(p.Out); err != nil {
		return err
	}
	switch {
	case len(runs) > 0 || unread != nil:
	case stored > 0:
		p.PrintNotice("no such runs: --kind and --state leave out %s", cli.FormatNumber(stored, "run"))
	case slices.Equal(paths, []string{DefaultWorkflows}):
		cli.PrintNone(ctx, p.Streams, "runs of workflows", DefaultWorkflows, "lockstep workflows",
			func(ctx context.Context) iter.Seq2[string, error] { return workflow.Find(ctx, p.client, "/") })
	case len(paths) == 0:
		p.PrintNotice("no workflows at or below /")
	default:
		p.PrintNotice("no runs of workflows at %s", joinNames(paths))
	}
	return cli.ExitCodeOfPrinted(p.Streams, unread)
}

// addSteps reads the steps of runs that are not done. It warns about what cannot be read, and
// returns one of the errors.
func (p *workflowsCommand) addSteps(ctx context.Context, runs []workflow.Report) (unread error) {
	left, err := sharedreport.AddSteps(ctx, p.client, runs)
	if left > 0 {
		p.PrintNotice("the steps of %d runs were not read: list fewer with --kind and --state", left)
	}
	for _, err := range failure.SplitJoined(err) {
		if err != nil && ctx.Err() == nil {
			p.PrintWarning("the steps of a run cannot be read: %v", err)
			unread = codeOfUnread(err)
		}
	}
	return unread
}

// warnOfTaken warns once of each kind if the members that have its runs cannot be read, and returns
// one of the errors.
func warnOfTaken(streams *cli.Streams, runs []workflow.Report) (unread error) {
	warned := map[string]bool{}
	for _, run := range runs {
		if kind := nameOfRun(run.Path, run.Kind); run.TakenErr != nil && !warned[kind] {
			warned[kind] = true
			streams.PrintWarning("lockstep cannot read which members have runs of kind %q: %v", run.Kind, run.TakenErr)
			unread = codeOfUnread(run.TakenErr)
		}
	}
	return unread
}

// codeOfUnread returns an error of what other programs have written with its exit code: a name that
// no run can have is no usage error.
func codeOfUnread(err error) error {
	if errors.Is(err, framework.ErrInvalid) {
		return &cli.ExitError{Code: cli.ExitMismatch, Reason: err}
	}
	return cli.WithCode(err)
}

// showRun prints one run.
func (p *workflowsCommand) showRun(ctx context.Context, path, id string) error {
	info, err := p.at(path).Inspect(ctx, id)
	if err != nil {
		return err
	}
	run := info
	unread := warnOfTaken(p.Streams, []workflow.Report{run})
	if p.JSON {
		err = cli.PrintResult(p.Out, true, run)
	} else {
		err = PrintRun(p.Out, run, time.Now())
	}
	if err != nil {
		return err
	}
	return cli.ExitCodeOfPrinted(p.Streams, unread)
}

// addAct makes a subcommand that changes the run that the argument at index run means. do gets the
// path of its workflows and its id. prepare is called before, without a connection.
func (p *workflowsCommand) addAct(streams *cli.Streams, cmd *cobra.Command, run int,
	prepare func(context.Context, *cobra.Command, []string) error,
	do func(ctx context.Context, path, id string, args []string) error,
) *cobra.Command {
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		path, id, err := parseRun(args[run])
		if err == nil {
			err = prepare(cmd.Context(), cmd, args)
		}
		if err != nil {
			return err
		}
		return p.useWorkflows(cmd, path, func(ctx context.Context) error { return do(ctx, path, id, args) })
	})
	p.AddConnectionFlags(streams, cmd)
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = completeRunIDs
	}
	return cmd
}

func noPreparation(context.Context, *cobra.Command, []string) error { return nil }

func newWorkflowsStart(streams *cli.Streams) *cobra.Command {
	p, in := &workflowsCommand{}, &cli.JsonInput{}
	var input json.RawMessage
	cmd := p.addAct(streams, &cobra.Command{
		Use:   "start KIND RUN [INPUT] [flags]",
		Short: "Start a run",
		Long: `Start a run of a kind. RUN is its ID, or the path of its workflows and its ID. INPUT is JSON; - or -f -
reads it from standard input, -f FILE from a file. Without it the input is null. lockstep ends when the
servers have the run, and does not wait for the run to end.

The same command again does nothing: a run is known by its ID. With another kind or input the exit code
is 65. If no member has ever worked on the kind, the exit code is 1 and nothing is started; if no
member takes runs of the kind at present, lockstep warns, and the run waits for one.`,
		Example: `  lockstep workflows start order order-42 '{"total":12}'
  lockstep workflows start order order-42 -f order.json
  jq .order < all.json | lockstep workflows start order order-42 -`,
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: completeKinds,
	}, 1, func(ctx context.Context, _ *cobra.Command, args []string) (err error) {
		input, err = in.Read(ctx, streams, args[2:])
		return err
	}, func(ctx context.Context, path, id string, args []string) error {
		return p.startRun(ctx, args[0], path, id, input)
	})
	in.AddInputFlag(cmd, "input")
	return cmd
}

// startRun starts a run, and warns if no member takes it.
func (p *workflowsCommand) startRun(ctx context.Context, kind, path, id string, input json.RawMessage) error {
	former, err := p.at(path).Inspect(ctx, id)
	if err != nil && !errors.Is(err, framework.ErrNotFound) {
		return err
	}
	existed := err == nil
	queue := znode.Join(path+"/queues", kind)
	if !existed {
		if err := p.checkKind(ctx, kind, queue); err != nil {
			return err
		}
	}
	worked, _ := p.hasMember(ctx, queue)
	named := workflow.NewKind[json.RawMessage, json.RawMessage](kind)
	if _, err := named.Start(ctx, p.at(path), id, input); err != nil {
		return err
	}
	if existed {
		p.PrintNotice("%s: was started before, at %s, and is %s", nameOfRun(path, id), cli.FormatTime(former.Started),
			former.State)
		return nil
	}
	p.PrintNotice("%s: started", nameOfRun(path, id))
	if !worked { // before the start no member was seen; one may have been between two runs
		if works, err := p.hasMember(ctx, queue); err == nil && !works {
			p.PrintWarning("no member takes runs of kind %q at present: the run waits until one does", kind)
		}
	}
	return nil
}

// checkKind refuses a kind that has no queue: maybe it is misspelt, and no member would take the
// run.
func (p *workflowsCommand) checkKind(ctx context.Context, kind, queue string) error {
	if strings.Contains(kind, "/") || framework.ValidatePath(queue) != nil { // Start says so
		return nil
	}
	_, err := p.client.Exists(ctx, queue)
	if errors.Is(err, framework.ErrNoNode) {
		return cli.ExitWith(cli.ExitMissing, fmt.Errorf("no member knows the kind %q", kind),
			"if a member works on the kind, give the path of its workflows before the ID, such as /orders/order-42")
	}
	return err
}

// hasMember reports whether a member takes runs of a kind, or has one: then the kind's queue has
// tickets (docs/layouts.md).
func (p *workflowsCommand) hasMember(ctx context.Context, queue string) (bool, error) {
	if err := framework.ValidatePath(queue); err != nil {
		return false, err
	}
	return queuelayout.HasTickets(ctx, p.client, queue)
}

func newWorkflowsCancel(streams *cli.Streams) *cobra.Command {
	p := &workflowsCommand{}
	var reason string
	cmd := p.addAct(streams, &cobra.Command{
		Use:   "cancel RUN [flags]",
		Short: "End a run that has not finished",
		Long: `End a run that has not finished. Its member notices that soon, and gives the run up; a step that is
under way may have its effect, and gets no record. Child runs are not cancelled. A run that was
cancelled before is no error. For one that has ended otherwise the exit code is 1.`,
		Example: `  lockstep workflows cancel order-42 --reason "the customer has called"`,
		Args:    cobra.ExactArgs(1),
	}, 0, noPreparation, func(ctx context.Context, path, id string, _ []string) error {
		if err := p.at(path).Cancel(ctx, id, reason); err != nil {
			return err
		}
		streams.PrintNotice("%s: cancelled", nameOfRun(path, id))
		return nil
	})
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, which is shown with the run")
	return cmd
}

func newWorkflowsRetry(streams *cli.Streams) *cobra.Command {
	p := &workflowsCommand{}
	var from, input string
	var opts []workflow.RetryOption
	cmd := p.addAct(streams, &cobra.Command{
		Use:   "retry RUN [flags]",
		Short: "Continue a run that has failed or was cancelled",
		Long: `Continue a run that has failed or was cancelled, at its first step without a record. A run that pauses after a
failed attempt continues at once. The run has all its attempts again. With --from, which names a step, a sleep or
the signal of a wait that has timed out, lockstep first deletes that record and all later ones, so that they run
again. Signals that have come stay, and so do child runs: retry a failed child first, and then its parent. A step
that has failed permanently stays failed without --from. --input gives the run another input, as JSON.
A run that is done needs --from. For a run that goes on by itself the exit code is 1.`,
		Example: `  lockstep workflows retry order-42
  lockstep workflows retry order-42 --from pay`,
		Args: cobra.ExactArgs(1),
	}, 0, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("from") && from == "" {
			return cli.UsageError("--from is empty: name a step")
		}
		if cmd.Flags().Changed("input") {
			data, err := (&cli.JsonInput{}).Read(ctx, streams, []string{input})
			if err != nil {
				return err
			}
			opts = append(opts, workflow.WithRetryInput(data))
		}
		return nil
	}, func(ctx context.Context, path, id string, _ []string) error {
		if err := p.at(path).Retry(ctx, id, from, opts...); err != nil {
			return err
		}
		streams.PrintNotice("%s: goes on", nameOfRun(path, id))
		return nil
	})
	cmd.Flags().StringVar(&from, "from", "", "delete the record of this step, sleep or expired wait and later ones")
	cmd.Flags().StringVar(&input, "input", "", "another input of the run, as JSON; - reads it from standard input")
	return cmd
}

func newWorkflowsRequeue(streams *cli.Streams) *cobra.Command {
	p := &workflowsCommand{}
	return p.addAct(streams, &cobra.Command{
		Use:   "requeue RUN [flags]",
		Short: "Give a run that stands still another item in its queue",
		Long: `Give an unfinished run another item in the queue of its kind, in place of one that "lockstep queue purge" has
deleted. Without an item no member executes the run. If a member executes it at present, it gives the run up, and the
run goes on at its first step without a record. For a run that has ended the exit code is 1.`,
		Example: `  lockstep workflows requeue order-42`,
		Args:    cobra.ExactArgs(1),
	}, 0, noPreparation, func(ctx context.Context, path, id string, _ []string) error {
		if err := p.at(path).Requeue(ctx, id); err != nil {
			return err
		}
		streams.PrintNotice("%s: has an item in its queue", nameOfRun(path, id))
		return nil
	})
}

func newWorkflowsRemove(streams *cli.Streams) *cobra.Command {
	p := &workflowsCommand{}
	return p.addAct(streams, &cobra.Command{
		Use:   "remove RUN [flags]",
		Short: "Delete a run that has finished",
		Long: `Delete a run that has finished, with the records of its steps, before its retention time is over. Its ID may be
used again, unless it was started to keep it. For a run that has not finished, and for a child run whose parent exists,
the exit code is 1.`,
		Example: `  lockstep workflows remove order-42`,
		Args:    cobra.ExactArgs(1),
	}, 0, noPreparation, func(ctx context.Context, path, id string, _ []string) error {
		if err := p.at(path).Remove(ctx, id); err != nil {
			return err
		}
		streams.PrintNotice("%s: removed", nameOfRun(path, id))
		return nil
	})
}

func newWorkflowsSignal(streams *cli.Streams) *cobra.Command {
	p, in := &workflowsCommand{}, &cli.JsonInput{}
	var data json.RawMessage
	var signalID string
	cmd := p.addAct(streams, &cobra.Command{
		Use:   "signal RUN NAME [DATA] [flags]",
		Short: "Send a signal to a run",
		Long: `Send a run the signal that it waits for, or will wait for. DATA is JSON; - or -f - reads it from
standard input, -f FILE from a file. Without it the data is null. A run takes a signal once: the same
signal again does nothing. With --id it takes several signals of one NAME, one for each id, if its
function awaits several. With other data, for a wait that has timed out and for a run that has ended,
the exit code is 1.`,
		Example: `  lockstep workflows signal order-42 delivered '{"parcel":7}'`,
		Args:    cobra.RangeArgs(2, 3),
	}, 0, func(ctx context.Context, _ *cobra.Command, args []string) (err error) {
		data, err = in.Read(ctx, streams, args[2:])
		return err
	}, func(ctx context.Context, path, id string, args []string) error {
		var opts []workflow.SignalOption
		if signalID != "" {
			opts = append(opts, workflow.WithSignalID(signalID))
		}
		if err := p.at(path).Signal(ctx, id, args[1], data, opts...); err != nil {
			return err
		}
		streams.PrintNotice("%s: has the signal %q", nameOfRun(path, id), args[1])
		return nil
	})
	in.AddInputFlag(cmd, "data")
	cmd.Flags().StringVar(&signalID, "id", "", "tell this signal apart from others of the same NAME")
	return cmd
}
