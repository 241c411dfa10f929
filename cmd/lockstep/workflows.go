package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/workflow"
)

// defaultWorkflows is the path of the workflows without --path, as in workflowfx.
const defaultWorkflows = "/lockstep/workflows"

// workflowsCommand is what "workflows" and its subcommands have in common.
type workflowsCommand struct {
	connectionFlags
	path      string
	client    *framework.Client
	workflows *workflow.Workflows
}

func (p *workflowsCommand) addWorkflowFlags(cmd *cobra.Command) {
	p.connectionFlags.addConnectionFlags(cmd)
	cmd.Flags().StringVar(&p.path, "path", defaultWorkflows, "the path of the workflows, as given to workflow.New")
}

// useWorkflows does one thing with the workflows.
func (p *workflowsCommand) useWorkflows(cmd *cobra.Command, do func(context.Context) error) (err error) {
	if err := framework.ValidatePath(p.path); err != nil {
		return usageError("--path %q cannot be used: %w", p.path, err)
	}
	if p.client, err = p.connectClient(cmd); err != nil {
		return err
	}
	defer closeClient(p.client)
	p.workflows = workflow.New(p.client, p.path)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := p.workflows.Close(ctx); err != nil {
			printWarning("%v", err)
		}
	}()
	return workflowCode(do(cmd.Context()))
}

// workflowCode returns an error of workflows with its exit code.
func workflowCode(err error) error {
	return findCode(err, []errorCode{
		{workflow.ErrNoRun, exitNotObtained, "see which there are: lockstep workflows; is --path right?"},
		{workflow.ErrUnknownKind, exitNotObtained, "if a member works on the kind, give the --path of its workflows"},
		{workflow.ErrFinished, exitNotObtained, ""},
		{workflow.ErrUnfinished, exitNotObtained, ""},
		{workflow.ErrSignalled, exitNotObtained, ""},
		{workflow.ErrOption, exitUsage, ""},
		{workflow.ErrIDInUse, exitMismatch, "use another ID, or see what it belongs to: lockstep workflows ID"},
		{workflow.ErrForeign, exitMismatch, "use another --path: this one belongs to something else"},
		{workflow.ErrBadRecord, exitMismatch, ""},
		{workflow.ErrNewerRecord, exitMismatch, "use a newer lockstep"},
	})
}

// workflowsFilter says which runs are listed.
type workflowsFilter struct {
	kinds  []string
	states []string
}

// runStates are the states of runs.
var runStates = []string{string(workflow.Active), string(workflow.Waiting), string(workflow.Done), string(workflow.Failed), string(workflow.Cancelled)}

func (f workflowsFilter) check() error {
	for _, state := range f.states {
		if !slices.Contains(runStates, state) {
			return usageError("--state %q: want one of %v", state, runStates)
		}
	}
	return nil
}

func (f workflowsFilter) matches(run workflow.Info) bool {
	return (len(f.kinds) == 0 || slices.Contains(f.kinds, run.Kind)) && (len(f.states) == 0 || slices.Contains(f.states, string(run.State)))
}

// newWorkflows shows the runs of workflows; its subcommands control them.
func newWorkflows() *cobra.Command {
	p := &workflowsCommand{}
	var filter workflowsFilter
	cmd := &cobra.Command{
		Use:   "workflows [ID] [flags]",
		Short: "Show and control runs of workflows",
		Long: `Show the runs of workflows (workflow.Workflows), the oldest first: kind, state, since when, the last step that
has a record, how many attempts have failed since the run last waited, what it waits for, the session and
the identity of the member that has it (host and process, unless it has another name), and the error of the
latest attempt or of the end. The step under way is not stored: it follows the last one that has a record.
A member that has died is shown until the servers end its session.

With an ID lockstep shows one run with its steps. It draws the steps of a graph (workflow.NewGraph): which are
done, which are under way, and which wait for others. If the ID is also that of a subcommand, give it after --.

Finished runs are shown until their retention time is over: by default 14 days for failed runs, 24 hours for others.
--json prints inputs and results as they are stored, and steps: those of runs that are done only with an ID.`,
		Example: `  lockstep workflows
  lockstep workflows --state failed --kind order
  lockstep workflows order-42                      one run, with its steps
  lockstep workflows start order order-42 '{"total":12}'
  lockstep workflows signal order-42 delivered '{"parcel":7}'
  lockstep workflows retry order-42                after its members have failed`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = withExitCodes(func(cmd *cobra.Command, args []string) error {
		if err := filter.check(); err != nil {
			return err
		}
		if len(args) > 0 && (len(filter.kinds) > 0 || len(filter.states) > 0) {
			return usageError("--kind and --state are for the list, and not for one ID")
		}
		return endBySignal(cmd.Context(), p.useWorkflows(cmd, func(ctx context.Context) error {
			if len(args) > 0 {
				return p.showRun(ctx, args[0])
			}
			return p.listRuns(ctx, filter)
		}))
	})
	p.addWorkflowFlags(cmd)
	cmd.Flags().StringSliceVar(&filter.kinds, "kind", nil, "list runs of these kinds only")
	cmd.Flags().StringSliceVar(&filter.states, "state", nil, "list runs in these states only: active, waiting, done, failed, cancelled")
	offerValues(cmd, "state", runStates...)
	cmd.ValidArgsFunction = completeRunIDs
	cmd.AddCommand(newWorkflowsStart(), newWorkflowsCancel(), newWorkflowsRetry(), newWorkflowsSignal())
	return cmd
}

// listRuns prints the runs that match. What cannot be read is warned about, and decides the exit code.
func (p *workflowsCommand) listRuns(ctx context.Context, filter workflowsFilter) error {
	runs, err := p.workflows.List(ctx)
	if runs == nil {
		return err
	}
	stored := len(runs)
	runs = slices.DeleteFunc(runs, func(run workflow.Info) bool { return !filter.matches(run) })
	unread := p.addSteps(ctx, runs)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, err := range failure.SplitJoined(err) {
		if err != nil {
			printWarning("a run cannot be read: %v", err)
			unread = codeOfUnread(err)
		}
	}
	if warned := warnOfTaken(runs); warned != nil {
		unread = warned
	}
	if p.json {
		for _, run := range runs {
			if err := printResult(os.Stdout, true, workflowView(run)); err != nil {
				return err
			}
		}
		return exitCodeOfPrinted(unread)
	}
	if err := workflowTable(runs, time.Now()).printTo(os.Stdout); err != nil {
		return err
	}
	if len(runs) == 0 && unread == nil {
		text := "no such runs below %s"
		if stored == 0 {
			text = "no runs of workflows below %s"
		}
		printNotice(text, p.path)
	}
	return exitCodeOfPrinted(unread)
}

// Limits of a list.
const (
	maxRunsWithSteps = 1000 // runs whose steps are read for one list
	readRunsAtOnce   = 16
)

// addSteps reads the steps of runs that are not done. It warns about what cannot be read, and returns one of the errors.
func (p *workflowsCommand) addSteps(ctx context.Context, runs []workflow.Info) (unread error) {
	errs := make([]error, len(runs))
	slots := make(chan struct{}, readRunsAtOnce)
	var reading sync.WaitGroup
	read, left := 0, 0
	for i, info := range runs {
		switch {
		case info.State == workflow.Done:
			continue
		case read == maxRunsWithSteps:
			left++
			continue
		}
		read++
		slots <- struct{}{}
		reading.Go(func() {
			defer func() { <-slots }()
			full, err := p.workflows.Inspect(ctx, info.ID, workflow.WithoutTaken()) // List has read it
			switch {
			case err == nil && full.State == info.State && full.ChangedAt.Equal(info.ChangedAt):
				full.Taken, full.TakenErr = info.Taken, info.TakenErr
				runs[i] = full
			case err == nil || errors.Is(err, workflow.ErrNoRun): // it has changed since it was listed
			default:
				errs[i] = err
			}
		})
	}
	reading.Wait()
	if left > 0 {
		printNotice("the steps of %d runs were not read: list fewer with --kind and --state", left)
	}
	for _, err := range errs {
		if err != nil && ctx.Err() == nil {
			printWarning("the steps of a run cannot be read: %v", err)
			unread = codeOfUnread(err)
		}
	}
	return unread
}

// warnOfTaken warns once of each kind if the members that have its runs cannot be read, and returns one of the errors.
func warnOfTaken(runs []workflow.Info) (unread error) {
	warned := map[string]bool{}
	for _, run := range runs {
		if run.TakenErr != nil && !warned[run.Kind] {
			warned[run.Kind] = true
			printWarning("lockstep cannot read which members have runs of kind %q: %v", run.Kind, run.TakenErr)
			unread = codeOfUnread(run.TakenErr)
		}
	}
	return unread
}

// codeOfUnread returns an error of what other programs have written with its exit code: a name that no run can have is no usage error.
func codeOfUnread(err error) error {
	if errors.Is(err, workflow.ErrOption) || errors.Is(err, framework.ErrInvalidPath) {
		return &exitError{code: exitMismatch, reason: err}
	}
	return workflowCode(queueCode(err))
}

func (p *workflowsCommand) queuePath(kind string) string { return znode.Join(p.path+"/queues", kind) }

// showRun prints one run.
func (p *workflowsCommand) showRun(ctx context.Context, id string) error {
	run, err := p.workflows.Inspect(ctx, id)
	if err != nil {
		return err
	}
	unread := warnOfTaken([]workflow.Info{run})
	if p.json {
		err = printResult(os.Stdout, true, workflowView(run))
	} else {
		err = printWorkflow(os.Stdout, run, time.Now())
	}
	if err != nil {
		return err
	}
	return exitCodeOfPrinted(unread)
}

// addAct makes a subcommand that changes a run.
func (p *workflowsCommand) addAct(cmd *cobra.Command, do func(ctx context.Context, cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd.RunE = withExitCodes(func(cmd *cobra.Command, args []string) error { return do(cmd.Context(), cmd, args) })
	p.addWorkflowFlags(cmd)
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = completeRunIDs
	}
	return cmd
}

func newWorkflowsStart() *cobra.Command {
	p, in := &workflowsCommand{}, &jsonInput{}
	cmd := p.addAct(&cobra.Command{
		Use:   "start KIND ID [INPUT] [flags]",
		Short: "Start a run",
		Long: `Start a run of a kind with an ID. INPUT is JSON; - or -f - reads it from standard input, -f FILE from a file.
Without it the input is null. lockstep ends when the servers have the run, and does not wait for the run to end.

The same command again does nothing: a run is known by its ID. With another kind or input the exit code
is 65. If no member has ever worked on the kind, the exit code is 1 and nothing is started; if no
member takes runs of the kind at present, lockstep warns, and the run waits for one.`,
		Example: `  lockstep workflows start order order-42 '{"total":12}'
  lockstep workflows start order order-42 -f order.json
  jq .order < all.json | lockstep workflows start order order-42 -`,
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: completeKinds,
	}, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		input, err := in.read(ctx, args[2:])
		if err != nil {
			return err
		}
		return p.useWorkflows(cmd, func(ctx context.Context) error { return p.startRun(ctx, args[0], args[1], input) })
	})
	in.addInputFlag(cmd, "input")
	return cmd
}

// startRun starts a run, and warns if no member takes it.
func (p *workflowsCommand) startRun(ctx context.Context, kind, id string, input json.RawMessage) error {
	former, err := p.workflows.Inspect(ctx, id)
	if err != nil && !errors.Is(err, workflow.ErrNoRun) {
		return err
	}
	existed := err == nil
	worked, _ := p.hasMember(ctx, kind)
	if err := p.workflows.Start(ctx, kind, id, input); err != nil {
		return err
	}
	if existed {
		printNotice("%s: was started before, at %s, and is %s", id, formatTime(former.StartedAt), former.State)
		return nil
	}
	printNotice("%s: started", id)
	if !worked { // before the start no member was seen; one may have been between two runs
		if works, err := p.hasMember(ctx, kind); err == nil && !works {
			printWarning("no member takes runs of kind %q at present: the run waits until one does", kind)
		}
	}
	return nil
}

// hasMember reports whether a member takes runs of a kind, or has one: then the kind's queue has tickets (docs/layouts.md).
func (p *workflowsCommand) hasMember(ctx context.Context, kind string) (bool, error) {
	dirs := []string{p.queuePath(kind) + "/tickets"}
	if err := framework.ValidatePath(dirs[0]); err != nil {
		return false, err
	}
	for range 2 { // lines, and segments
		var below []string
		for _, dir := range dirs {
			names, _, err := p.client.Children(ctx, dir)
			if err != nil && !errors.Is(err, framework.ErrNoNode) {
				return false, err
			}
			for _, name := range names {
				below = append(below, znode.Join(dir, name))
			}
		}
		dirs = below
	}
	for _, dir := range dirs {
		names, _, err := p.client.Children(ctx, dir)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return false, err
		}
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "t-") }) {
			return true, nil
		}
	}
	return false, nil
}

func newWorkflowsCancel() *cobra.Command {
	p := &workflowsCommand{}
	var reason string
	cmd := p.addAct(&cobra.Command{
		Use:   "cancel ID [flags]",
		Short: "End a run that has not finished",
		Long: `End a run that has not finished. Its member notices that soon, and gives the run up; a step that is under way may
have its effect, and gets no record. Child runs are not cancelled. A run that was cancelled before is no error. For one
that has ended otherwise the exit code is 1.`,
		Example: `  lockstep workflows cancel order-42 --reason "the customer has called"`,
		Args:    cobra.ExactArgs(1),
	}, func(_ context.Context, cmd *cobra.Command, args []string) error {
		return p.useWorkflows(cmd, func(ctx context.Context) error {
			if err := p.workflows.Cancel(ctx, args[0], reason); err != nil {
				return err
			}
			printNotice("%s: cancelled", args[0])
			return nil
		})
	})
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, which is shown with the run")
	return cmd
}

func newWorkflowsRetry() *cobra.Command {
	p := &workflowsCommand{}
	var from string
	cmd := p.addAct(&cobra.Command{
		Use:   "retry ID [flags]",
		Short: "Continue a run that has failed or was cancelled",
		Long: `Continue a run that has failed or was cancelled, at its first step without a record. A run that pauses after a
failed attempt continues at once. The run has all its attempts again. With --from, which names a step, a sleep or
the signal of a wait that has timed out, lockstep first deletes that record and all later ones, so that they run
again. Signals that have come stay, and so do child runs: retry a failed child first, and then its parent.
A run that is done needs --from. For a run that goes on by itself the exit code is 1.`,
		Example: `  lockstep workflows retry order-42
  lockstep workflows retry order-42 --from pay`,
		Args: cobra.ExactArgs(1),
	}, func(_ context.Context, cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("from") && from == "" {
			return usageError("--from is empty: name a step")
		}
		return p.useWorkflows(cmd, func(ctx context.Context) error {
			if err := p.workflows.Retry(ctx, args[0], from); err != nil {
				return err
			}
			printNotice("%s: goes on", args[0])
			return nil
		})
	})
	cmd.Flags().StringVar(&from, "from", "", "delete the record of this step, sleep or expired wait and later ones")
	return cmd
}

func newWorkflowsSignal() *cobra.Command {
	p, in := &workflowsCommand{}, &jsonInput{}
	cmd := p.addAct(&cobra.Command{
		Use:   "signal ID NAME [DATA] [flags]",
		Short: "Send a signal to a run",
		Long: `Send a run the signal that it waits for, or will wait for. DATA is JSON; - or -f - reads it from standard input,
-f FILE from a file. Without it the data is null. A run takes a signal once: the same signal again does nothing.
With other data, for a wait that has timed out and for a run that has ended, the exit code is 1.`,
		Example: `  lockstep workflows signal order-42 delivered '{"parcel":7}'`,
		Args:    cobra.RangeArgs(2, 3),
	}, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		data, err := in.read(ctx, args[2:])
		if err != nil {
			return err
		}
		return p.useWorkflows(cmd, func(ctx context.Context) error {
			if err := p.workflows.Signal(ctx, args[0], args[1], data); err != nil {
				return err
			}
			printNotice("%s: has the signal %q", args[0], args[1])
			return nil
		})
	})
	in.addInputFlag(cmd, "data")
	return cmd
}

// jsonInput is JSON from an argument, a file or standard input.
type jsonInput struct{ file string }

func (in *jsonInput) addInputFlag(cmd *cobra.Command, what string) {
	cmd.Flags().StringVarP(&in.file, "file", "f", "", "read the "+what+" from this file, or from standard input if it is -")
	offerFiles(cmd, "file")
}

// read returns the JSON, null if none is given. It ends with ctx, also while standard input is open and silent.
func (in *jsonInput) read(ctx context.Context, args []string) (json.RawMessage, error) {
	text, file := []byte("null"), in.file
	switch {
	case len(args) > 0 && file != "":
		return nil, usageError("JSON is given as an argument and with --file: give one of them")
	case len(args) > 0 && args[0] == "-":
		file = "-"
	case len(args) > 0:
		text = []byte(args[0])
	}
	if file != "" {
		var err error
		if text, err = readFileOrInput(ctx, file); err != nil {
			return nil, err
		}
	}
	var value json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&value)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = errors.New("more follows after the first value")
		}
	}
	if err != nil {
		return nil, usageError("%s is not JSON: %w; write a text as '\"text\"'", shortenText(string(text)), err)
	}
	return value, nil
}

// completeRunIDs offers the ids of runs.
func completeRunIDs(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	client, err := connectSilently(ctx, cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer client.Close(ctx) //nolint:errcheck // the session ends by itself
	runs, err := workflow.New(client, cmd.Flag("path").Value.String()).List(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offered []string
	for _, run := range runs {
		if isOfferable(run.ID, begun) {
			offered = append(offered, run.ID)
		}
	}
	return slices.Clip(offered[:min(len(offered), maxCompletions)]), cobra.ShellCompDirectiveNoFileComp
}

// completeKinds offers the kinds on which members have worked.
func completeKinds(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	return findCompletions(ctx, cmd, cmd.Flag("path").Value.String()+"/queues/", begun), cobra.ShellCompDirectiveNoFileComp
}
