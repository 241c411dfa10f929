package mutants

// cmdMutants are the safeguards of the command line.
var cmdMutants = []mutant{
	{
		promise: "A deadlock of requests under leases",
		name:    "what is held around a command is not known in it", file: "internal/cli/lock/lock.go",
		pkg: "./cmd/lockstep", test: "TestScriptsThatWaitForEachOther",
		old: "l.acquireLock(withInheritedLocks(ctx, l.Streams), locker)",
		new: "l.acquireLock(ctx, locker)",
	},
	{
		promise: "`lockstep check` and the monitor find a deadlock that is only reported",
		name:    "--deadlock is not heeded", file: "internal/cli/lock/lockflags.go",
		pkg: "./cmd/lockstep", test: "TestScriptsThatOnlyReportTheirDeadlock",
		old: "locks.WithDeadlockMode(deadlockModes[o.deadlock])",
		new: "locks.WithDeadlockMode(locks.DeadlockFail)",
	},
	{
		promise: "A scan reports the path of each node that it cannot read",
		name:    "the monitor's program runs as long as it likes", file: "internal/cli/check/monitor.go",
		pkg: "./cmd/lockstep", test: "TestMonitorStopsProgramThatHangs",
		old: "context.WithTimeoutCause(ctx, time.Duration(c.timeout),",
		new: "context.WithTimeoutCause(ctx, time.Hour,",
	},
	{
		promise: "A scan reports the path of each node that it cannot read",
		name:    "the monitor's program gets what terminals obey", file: "internal/cli/check/monitor.go",
		pkg: "./cmd/lockstep", test: "TestMonitorPassesNothingHostileOn",
		old: "text := cli.InOneLine(v[1])",
		new: "text := v[1]",
	},
	{
		promise: "A command is not started under a hold that has ended",
		name:    "a command is started under an ended hold", file: "internal/procguard/command.go",
		test: "TestNoCommandIsStartedUnderAnEndedHold",
		old:  "if remaining <= 0 || h.Context.Err() != nil {",
		new:  "if remaining < 0 {",
	},
	{
		promise: "A command is not started under a hold that has ended",
		name:    "the lease at the start of a command is not known", file: "internal/procguard/command.go",
		test: "TestHoldThatIsLostAtTheStartTerminatesTheCommand",
		old:  "c.superviseProcess(p, h, now+remaining)",
		new:  "c.superviseProcess(p, h, min(0, now))",
	},
	{
		promise: "A signal ends a `lockstep` command also while the command connects",
		name:    "a signal does not end the wait for standard input", file: "internal/cli/input.go",
		pkg: "./cmd/lockstep", test: "TestASignalEndsAConfigSetThatWaitsForInput",
		old: "\tcase <-ctx.Done():\n\t\treturn nil, context.Cause(ctx)\n",
		new: "",
	},
	{
		promise: "A list of the command line shows what can be read",
		name:    "a barrier that cannot be read has no exit code", file: "internal/cli/barrier/list.go",
		pkg: "./cmd/lockstep", test: "TestABarrierThatCannotBeReadLeavesTheOthers",
		old: "unread = err\n",
		new: "unread = nil\n",
	},
	{
		promise: "An item that a consumer gives back with `Return` counts no attempt",
		name:    "Ctrl-C ends the command alone", file: "internal/cli/hold/runner.go",
		pkg: "./cmd/lockstep", test: "TestCtrlCEndsTheProgramWithItsCommand",
		old: "\t\t\tcli.RaiseAndWait(ctx, s)\n", new: "",
	},
	{
		promise: "Other clients have no access to the nodes of a client with credentials",
		name:    "a command gets the credentials", file: "internal/cli/hold/runner.go",
		pkg: "./cmd/lockstep", test: "TestACommandDoesNotGetTheCredentials",
		old: "return []string{framework.EnvAuth}", new: `return []string{""}`,
	},
}
