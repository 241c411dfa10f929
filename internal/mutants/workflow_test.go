package mutants

func init() { lists["workflow"] = workflowMutants }

// workflowMutants are the safeguards of package workflow.
var workflowMutants = []mutant{
	{
		name: "a record is written without the guard", file: "workflow/run.go", test: "TestServersRefuseRecordOfEndedExecutor",
		old: "s.Multi(ctx, append(guardsOf(r.executor), framework.CreateOp(node,",
		new: "s.Multi(ctx, append([]framework.Op{framework.CheckOp(\"/\", framework.AnyVersion)}, framework.CreateOp(node,",
	},
	{
		name: "a ledger is made without the guard", file: "workflow/open.go", test: "TestServersRefuseRecordOfEndedExecutor",
		old: "s.Multi(ctx, append(guardsOf(e), framework.CreateOp(l.path,",
		new: "s.Multi(ctx, append([]framework.Op{framework.CheckOp(\"/\", framework.AnyVersion)}, framework.CreateOp(l.path,",
	},
	{
		name: "records are deleted without the guard", file: "workflow/ledger.go", test: "TestServersRefuseRecordOfEndedExecutor",
		old: "ops := guardsOf(e)",
		new: "ops := []framework.Op{framework.CheckOp(\"/\", framework.AnyVersion)}",
	},
	{
		name: "records are read without a sync", file: "workflow/open.go", test: "TestRecordsBehindLaggingServer",
		old: "	if err := s.Sync(ctx, l.path); err != nil {\n		return nil, err\n	}\n",
		new: "",
	},
	{
		name: "records are listed without a sync", file: "workflow/ledger.go", test: "TestRecordsBehindLaggingServer",
		old: "			if err := s.Sync(ctx, l.path); err != nil {\n				return err\n			}\n",
		new: "",
	},
	{
		name: "records are deleted without a sync", file: "workflow/ledger.go", test: "TestRecordsBehindLaggingServer",
		old: "	if err := s.Sync(ctx, l.path); err != nil { // else a record of the former executor may stay\n		return err\n	}\n",
		new: "",
	},
	{
		name: "a key has no identity of the run", file: "workflow/run.go", test: "TestNextExecutorGetsRecordedResults",
		old: "ID: r.id + \"-\" + name", new: "ID: name",
	},
	{
		name: "another executor's record counts as this one's", file: "workflow/run.go", test: "TestExecutorsWithDifferentLocksFindOut",
		old: "if err == nil && record.By != r.own {", new: "if err == nil && record.By == \"\" {",
	},
	{
		name: "a record without an answer is not looked for", file: "workflow/run.go", test: "TestStepAfterUncertainRecordReturnsIt",
		old: "	if before == uncertain {", new: "	if before == uncertain && false {",
	},
	{
		name: "an executor that has ended runs a step", file: "workflow/run.go", test: "TestExecutorThatLosesItsSessionRecordsNothing",
		old: "		if err := r.whyEnded(ctx, failed); err != nil {", new: "		if err := r.whyEnded(ctx, failed); err != nil && failed != nil {",
	},
	{
		name: "a step's context outlives the executor", file: "workflow/ledger.go", test: "TestExecutorThatLosesItsSessionRecordsNothing",
		old: "	unwatch := context.AfterFunc(e.Context(), func() { cancel(endedError(e)) })",
		new: "	unwatch := context.AfterFunc(e.Context(), func() {})",
	},
	{
		name: "a result is recorded that cannot be read", file: "workflow/run.go", test: "TestResultsThatCannotBeRecorded",
		old: "	if err := decode(record.Result); err != nil { // so that no record is written that nobody can read\n		return err\n	}\n",
		new: "",
	},
	{
		name: "a permanent error is retried", file: "workflow/run.go", test: "TestRetriesOfAStep|TestResultsThatCannotBeRecorded",
		old: "key.Attempt >= cfg.attempts || errors.As(err, &permanent)", new: "key.Attempt >= cfg.attempts || errors.As(err, &permanent) && false",
	},
	{
		name: "a name is used twice", file: "workflow/run.go", test: "TestStepsOfOneRunAtOnce",
		old: "	if before == used {", new: "	if before == used && false {",
	},
	{
		name: "the sum of results has no bound", file: "workflow/run.go", test: "TestResultsThatCannotBeRecorded",
		old: "size > MaxResults {", new: "size > 2*MaxResults {",
	},
	{
		name: "the number of steps has no bound", file: "workflow/run.go", test: "TestTooManySteps",
		old: "r.countSteps() >= MaxSteps {", new: "r.countSteps() > MaxSteps {",
	},
	{
		name: "foreign nodes below a ledger are deleted around", file: "workflow/ledger.go", test: "TestForeignAndNewerNodes",
		old: "		if !strings.HasPrefix(name, stepPrefix) {\n			return", new: "		if !strings.HasPrefix(name, \"\") {\n			return",
	},
	{
		name: "a run's step is recorded without the guard of the delivery", file: "workflow/runstate.go", test: "TestServersRefuseRecordsOfFormerExecutors",
		old: "return []framework.Op{e.delivery.Guard(), e.version}", new: "return []framework.Op{e.version}",
	},
	{
		name: "a run's step is recorded after the run was cancelled", file: "workflow/runstate.go", test: "TestServersRefuseRecordsOfFormerExecutors",
		old: "return []framework.Op{e.delivery.Guard(), e.version}", new: "return []framework.Op{e.delivery.Guard()}",
	},
	{
		name: "an executor takes a run up without a write", file: "workflow/execute.go", test: "TestSignalWhileTheLimitIsOver",
		old: "	case r.State == Waiting:\n", new: "	case r.State == Waiting && false:\n",
	},
	{
		name: "an item of a former turn counts", file: "workflow/execute.go", test: "TestItemsOfFormerTurnsAreOver",
		old: "(r.ID != item.ID || r.Turn != item.Turn)", new: "r.ID != item.ID",
	},
	{
		name: "a run waits for a signal that has come", file: "workflow/waits.go", test: "TestSignalsBesideTheSuspension",
		old: "r.state.addWait(w, framework.CreateOp(node, nil, framework.Persistent), framework.DeleteOp(node, framework.AnyVersion))",
		new: "r.state.addWait(w, framework.CheckOp(\"/\"+node[:0], framework.AnyVersion))",
	},
	{
		name: "a run waits for a child that has ended", file: "workflow/waits.go", test: "TestChildThatEndsBesideTheSuspension",
		old: "r.state.addWait(runWait{Child: id}, child.unchanged())", new: "r.state.addWait(runWait{Child: id})",
	},
	{
		name: "a cancelled run is given to a second executor", file: "workflow/lifecycle.go", test: "TestCancel",
		old: "			next.Held = true\n", new: "			next.Held = false\n",
	},
	{
		name: "an executor is not told that the run was cancelled", file: "workflow/execute.go", test: "TestCancel",
		old: "		cancel(watchRun(within, s, r))\n", new: "		_ = watchRun(within, s, r)\n",
	},
	{
		name: "a delivery is acknowledged before the run's end", file: "workflow/execute.go", test: "TestNextMemberGoesOnWhereOneHasDied",
		old: "	return x.execute(ctx, s, d, r)\n", new: "	_ = d.Ack(ctx)\n	return x.execute(ctx, s, d, r)\n",
	},
	{
		name: "a run may lose any number of executors", file: "workflow/execute.go", test: "TestNextMemberGoesOnWhereOneHasDied",
		old: "losses > x.kind.cfg.losses {", new: "losses > 100*x.kind.cfg.losses {",
	},
	{
		name: "an id is used again with another input", file: "workflow/lifecycle.go", test: "TestRunTakesItsSteps",
		old: "stored.Workflow != r.Workflow || !bytes.Equal(stored.Input, r.Input)", new: "stored.Workflow != r.Workflow",
	},
	{
		name: "a parent is not woken", file: "workflow/lifecycle.go", test: "TestCancelledChildWakesItsParent",
		old: "		case parent.waitsFor(func(w runWait) bool { return w.Child == r.name }):", new: "		case parent.waitsFor(func(w runWait) bool { return w.Child == r.node }):",
	},
	{
		name: "a timeout is not settled", file: "workflow/waits.go", test: "TestSignalsWithALimit",
		old: "			if signal, err = r.settleSignal(ctx, name); err != nil {\n				return nil, err\n			}\n", new: "			signal.TimedOut = true\n",
	},
	{
		name: "a permanent error of a run is tried again", file: "workflow/execute.go", test: "TestFailedRuns",
		old: "next.Failures >= x.kind.cfg.attempts || errors.As(err, &permanent) {", new: "next.Failures >= x.kind.cfg.attempts || errors.As(err, &permanent) && false {",
	},
	{
		name: "a run is removed that was retried", file: "workflow/sweep.go", test: "TestFinishedRunsAreRemoved",
		old: "		case r.stat.Mtime.After(due):", new: "		case false:",
	},
	{
		name: "a run that does not end is removed", file: "workflow/sweep.go", test: "TestFinishedRunsAreRemoved",
		old: "		case !r.State.IsFinished(): // it was retried", new: "		case r.State == \"\": // it was retried",
	},
}
