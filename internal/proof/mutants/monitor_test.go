package mutants

// monitorMutants are the safeguards of package monitor.
var monitorMutants = []mutant{
	{
		promise: "`lockstep check` and the monitor find a deadlock that is only reported",
		name:    "a deadlock that ends by itself is a finding", file: "monitor/locks.go",
		test: "TestADeadlockThatEndsIsNoFinding",
		old:  "		if !d.Lasting {\n", new: "		if false {\n",
	},
	{
		promise: "A monitor reports a finding once when it begins and once when it",
		name:    "a finding begins at its first scan", file: "monitor/hysteresis.go", test: "TestManyWaiters",
		old: "isOpen || s.seen < h.beginAfter {", new: "isOpen || s.seen < 1 {",
	},
	{
		promise: "A monitor reports a finding once when it begins and once when it",
		name:    "an event is told again after it was told", file: "monitor/monitor.go",
		test: "TestNextLeaderGoesOn|TestManyWaiters",
		old:  "			f.BeginReported, changed = true, true", new: "			changed = true",
	},
	{
		promise: "A monitor reports a finding once when it begins and once when it",
		name:    "an event is told before it is recorded", file: "monitor/monitor.go",
		test: "TestLeaderThatDiesWhileItReports",
		old:  "		err = w.saveRecord(ctx)\n	}\n	return seen, err", new: "	}\n	return seen, err",
	},
	{
		promise: "A scan reports the path of each node that it cannot read",
		name:    "what a scan could not read ends", file: "monitor/hysteresis.go",
		test: "TestUnreadableDirectory|TestGrowingQueue",
		old:  "		if l.isUndecided(k) {\n", new: "		if l.isUndecided(k) && false {\n",
	},
	{
		promise: "A scan reports the path of each node that it cannot read",
		name:    "a second call begins while one does not return", file: "monitor/eventcaller.go",
		test: "TestFunctionThatBlocks",
		old:  "	default:\n		return errBusy\n",
		new:  "	default:\n		c.busy = make(chan struct{}, 1)\n		c.busy <- struct{}{}\n",
	},
}
