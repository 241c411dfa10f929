package mutants

// workflowMutants are the safeguards of package workflow.
var workflowMutants = []mutant{
	{
		promise: "A step of a ledger has at most one record",
		name:    "a record is written without the guard", file: "workflow/step.go",
		test: "TestServersRefuseRecordOfEndedExecutor",
		old:  "s.Multi(ctx, append(guardsOf(r.executor), framework.CreateOp(node,",
		new: "s.Multi(ctx, append([]framework.Op{framework.CheckOp(\"/\", framework.AnyVersion)}, " +
			"framework.CreateOp(node,",
	},
	{
		promise: "A step of a ledger has at most one record",
		name:    "records are read without a sync", file: "workflow/open.go", test: "TestRecordsBehindLaggingServer",
		old: "	if err := s.Sync(ctx, l.path); err != nil {\n		return nil, err\n	}\n",
		new: "",
	},
	{
		promise: "A step of a ledger has at most one record",
		name:    "a key has no UUID", file: "workflow/step.go", test: "TestNextExecutorGetsRecordedResults",
		old: "ID: r.uuid + \"-\" + name", new: "ID: name",
	},
	{
		promise: "A step is recorded once although replies are lost",
		name:    "another executor's record counts as this one's", file: "workflow/step.go",
		test: "TestExecutorsWithDifferentLocksFindOut",
		old:  "if err == nil && record.By != r.recorderID {", new: "if err == nil && record.By == \"\" {",
	},
	{
		promise: "A step is recorded once although replies are lost",
		name:    "a record without an answer is not looked for", file: "workflow/step.go",
		test: "TestStepAfterUncertainRecordReturnsIt",
		old:  "	if before == uncertain {", new: "	if before == uncertain && false {",
	},
	{
		promise: "A step that has failed permanently is not run again",
		name:    "a permanent failure is not recorded", file: "workflow/step.go",
		test: "TestWhatIsCompensatedIsNotDoneLater",
		old:  "			record.Result, record.Failure = nil, cfg.failureOf(err)\n			return record, nil\n",
		new:  "			return stepRecord{}, Permanent(&stepError{*cfg.failureOf(err), cfg.permanentErrors})\n",
	},
	{
		promise: "A step that has failed permanently is not run again",
		name:    "the loss of a session counts as a permanent failure", file: "workflow/step.go",
		test: "TestErrorsThatSayNothingOfTheWorkAreNotRecorded",
		old:  " && !saysNothingOfTheWork(err):", new: ":",
	},
	{
		promise: "A step that has failed permanently is not run again",
		name:    "an older release reads a failure as a record without a result", file: "workflow/record.go",
		test: "TestStoredSteps",
		old:  "version = failureVersion", new: "version = recordVersion",
	},
	{
		promise: "A step of a graph begins when each step that it depends on has",
		name:    "a step of a graph begins before those before it", file: "workflow/graph.go",
		test: "TestGraphRunsStepsInTheirOrder",
		old:  "			for _, name := range step.After {\n				select {",
		new:  "			for _, name := range step.After[:0] {\n				select {",
	},
	{
		promise: "A step of a graph begins when each step that it depends on has",
		name:    "a step of a graph begins before the record of the one before it", file: "workflow/graph.go",
		test: "TestGraphStepBeginsAfterTheRecord",
		old: "\t\t\tif err := step.run(ctx, r, input, GraphResults{g.shape, r, step.Name}); err != nil {\n" +
			"\t\t\t\tfail()\n\t\t\t\treturn err\n\t\t\t}\n\t\t\tclose(recorded[step.Name])\n",
		new: "\t\t\tclose(recorded[step.Name])\n" +
			"\t\t\tif err := step.run(ctx, r, input, GraphResults{g.shape, r, step.Name}); err != nil {\n" +
			"\t\t\t\tfail()\n\t\t\t\treturn err\n\t\t\t}\n",
	},
	{
		promise: "A step of a graph begins when each step that it depends on has",
		name:    "a graph is not compared with the recorded one", file: "workflow/graph.go",
		test: "TestGraphOfAnotherRelease",
		old:  "g.shape.differences(began); len(differences) > 0 {",
		new:  "began.differences(began); len(differences) > 0 {",
	},
	{
		promise: "One executor at a time has a run",
		name:    "a run's step is recorded without the guard of the delivery", file: "workflow/run.go",
		test: "TestServersRefuseRecordsOfFormerExecutors",
		old:  "return []framework.Op{e.delivery.Guard(), e.version}", new: "return []framework.Op{e.version}",
	},
	{
		promise: "One executor at a time has a run",
		name:    "a run's step is recorded after the run was cancelled", file: "workflow/run.go",
		test: "TestServersRefuseRecordsOfFormerExecutors",
		old:  "return []framework.Op{e.delivery.Guard(), e.version}", new: "return []framework.Op{e.delivery.Guard()}",
	},
	{
		promise: "One executor at a time has a run",
		name:    "a former item of the run counts", file: "workflow/execute.go", test: "TestFormerItemsOfARunAreOver",
		old: "(r.UUID != item.UUID || r.ItemNumber != item.ItemNumber)", new: "r.UUID != item.UUID",
	},
	{
		promise: "One executor at a time has a run",
		name:    "a cancelled run is given to a second executor", file: "workflow/lifecycle.go", test: "TestCancel",
		old: "			next.Held = true\n", new: "			next.Held = false\n",
	},
	{
		promise: "One executor at a time has a run",
		name:    "a delivery is acknowledged before the run's end", file: "workflow/execute.go",
		test: "TestNextMemberGoesOnWhereOneHasDied",
		old:  "	return x.execute(ctx, s, d, r)\n", new: "	_ = d.Ack(ctx)\n	return x.execute(ctx, s, d, r)\n",
	},
	{
		promise: "One executor at a time has a run",
		name:    "a run may lose any number of executors", file: "workflow/execute.go",
		test: "TestARunThatCrashesItsProcessesFails",
		old:  "losses > x.function.cfg.losses {", new: "losses > 100*x.function.cfg.losses {",
	},
	{
		promise: "A run starts in one transaction with the caller's own writes",
		name:    "a start leaves the caller's operations out", file: "workflow/start.go",
		test: "TestStartWithOpsIsAtomic",
		old:  "ops: ops,\n\t\tcallerOps: len(with.callers)})", new: "ops: ops[:1]})",
	},
	{
		promise: "A run that waits misses no signal",
		name:    "a run waits for a signal that has come", file: "workflow/lifecycle.go",
		test: "TestWhatComesBetweenTheLookAndTheSuspension",
		old: "			checks = append(checks, framework.CreateOp(nodes[i], nil, framework.Persistent), " +
			"framework.DeleteOp(nodes[i], framework.AnyVersion))\n", new: "			continue\n",
	},
	{
		promise: "A run that waits misses no signal",
		name:    "a run waits for a child that has ended", file: "workflow/lifecycle.go",
		test: "TestWhatComesBetweenTheLookAndTheSuspension",
		old:  "checks = append(checks, framework.CheckOp(nodes[i], n.Stat.Version))",
		new:  "checks = append(checks, framework.CheckOp(nodes[i], framework.AnyVersion))",
	},
	{
		promise: "A run that waits misses no signal",
		name:    "a parent is not woken", file: "workflow/lifecycle.go", test: "TestCancelledChildWakesItsParent",
		old: "		case parent.waitsFor(func(w runWait) bool { return w.Child == r.id }):",
		new: "		case parent.waitsFor(func(w runWait) bool { return w.Child == r.node }):",
	},
	{
		promise: "A run that waits misses no signal",
		name:    "a timeout is not settled", file: "workflow/waits.go", test: "TestSignalsWithALimit",
		old: "			signal, err = r.timeOutSignal(ctx, next)\n", new: "			signal.TimedOut = true\n",
	},
	{
		promise: "A run that waits misses no signal",
		name:    "a run is removed that was retried", file: "workflow/sweep.go", test: "TestFinishedRunsAreRemoved",
		old: "		case r.stat.Mtime.After(ended.due), ", new: "		case false, ",
	},
	{
		promise: "A child run has one outcome for its parent",
		name:    "a child of a former run is taken for the run's own", file: "workflow/waits.go",
		test: "TestAnIDUsedAgainHasItsOwnChildren",
		old:  "case child.Parent.UUID == record.Parent.UUID || !child.State.IsFinished():",
		new:  "case child.Parent.UUID != \"\":",
	},
	{
		promise: "A child run has one outcome for its parent",
		name:    "a child is removed before its parent", file: "workflow/sweep.go",
		test: "TestAChildStaysAsLongAsItsParent",
		old:  ", r.Parent != nil && parents[*r.Parent]:", new: ", r.Parent != nil && parents[*r.Parent] && false:",
	},
	{
		promise: "A job of the scheduler that starts a run for each tick starts one",
		name:    "a removed run leaves nothing of its kept id", file: "workflow/sweep.go",
		test: "TestAnIDIsKept|TestOneRunForATickThatIsRepeatedLate",
		old:  "if r.Keep == 0 || !until.After(now) {", new: "if r.Keep >= 0 || !until.After(now) {",
	},
	{
		promise: "A signal, a cancellation, a retry and a requeue of a run take effect at most",
		name:    "a call does not see that a record has forgotten its request", file: "workflow/runrecord.go",
		test: "TestCallsWhoseOutcomeCannotBeKnown",
		old:  "	if len(r.Requests) < keptRequests {", new: "	if len(r.Requests) <= keptRequests {",
	},
}
