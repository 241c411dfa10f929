package mutants

func init() { lists["workflow"] = workflowMutants }

// workflowMutants are the safeguards of package workflow.
var workflowMutants = []mutant{
	{
		name: "a record is written without the guard", file: "workflow/run.go", test: "TestServersRefuseRecordOfEndedExecutor",
		old: "s.Multi(ctx, r.executor.Guard(), framework.CreateOp(node,",
		new: "s.Multi(ctx, framework.CheckOp(\"/\", framework.AnyVersion), framework.CreateOp(node,",
	},
	{
		name: "a ledger is made without the guard", file: "workflow/open.go", test: "TestServersRefuseRecordOfEndedExecutor",
		old: "s.Multi(ctx, e.Guard(), framework.CreateOp(l.path,",
		new: "s.Multi(ctx, framework.CheckOp(\"/\", framework.AnyVersion), framework.CreateOp(l.path,",
	},
	{
		name: "records are deleted without the guard", file: "workflow/ledger.go", test: "TestServersRefuseRecordOfEndedExecutor",
		old: "ops := []framework.Op{e.Guard()}",
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
}
