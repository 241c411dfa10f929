package mutants

func init() { lists["monitor"] = monitorMutants }

// monitorMutants are the safeguards of package monitor.
var monitorMutants = []mutant{
	{
		name: "a deadlock that ends by itself is a finding", file: "monitor/locks.go",
		test: "TestADeadlockThatEndsIsNoFinding",
		old:  "		if !d.Lasting {\n", new: "		if false {\n",
	},
	{
		name: "an item is a finding after any attempt", file: "monitor/queues.go",
		test: "TestItemsThatFailAgainAndAgain",
		old:  "	if q.attempts >= w.settings.attempts {", new: "	if q.attempts > 0 {",
	},
	{
		name: "nothing is said of a root without nodes", file: "monitor/monitor.go", pkg: "./cmd/lockstep",
		test: "TestMonitorSaysThatNothingIsThereYet",
		old:  "|| err == nil && st.NumChildren == 0 {", new: "|| err == nil && st.NumChildren < 0 {",
	},
	{
		name: "a finding begins at its first look", file: "monitor/hysteresis.go", test: "TestManyWaiters",
		old: "isOpen || s.seen < h.beginAfter {", new: "isOpen || s.seen < 1 {",
	},
	{
		name: "a finding ends at the first look without it", file: "monitor/hysteresis.go", test: "TestManyWaiters",
		old: "s.notSeen >= h.endAfter &&", new: "s.notSeen >= 1 &&",
	},
	{
		name: "looks without a finding are counted together", file: "monitor/hysteresis.go", test: "TestManyWaiters",
		old: "s.since, s.notSeen = l.at, 0", new: "s.since = l.at",
	},
	{
		name: "what a look could not read ends", file: "monitor/hysteresis.go",
		test: "TestUnreadableDirectory|TestGrowingQueue",
		old:  "		if l.isUndecided(k) {\n", new: "		if l.isUndecided(k) && false {\n",
	},
	{
		name: "the next leader forgets how long a holder holds", file: "monitor/monitor.go",
		test: "TestNextLeaderKnowsLongHold",
		old:  "		if !w.resumed {", new: "		if false {",
	},
	{
		name: "an event is told again after it was told", file: "monitor/monitor.go",
		test: "TestNextLeaderGoesOn|TestManyWaiters",
		old:  "			f.BeginReported, changed = true, true", new: "			changed = true",
	},
	{
		name: "an event is told before it is recorded", file: "monitor/monitor.go",
		test: "TestLeaderThatDiesWhileItReports",
		old:  "		err = w.saveRecord(ctx)\n	}\n	return seen, err", new: "	}\n	return seen, err",
	},
	{
		name: "a record that was not written is believed", file: "monitor/monitor.go",
		test: "TestRecordThatAnotherClientWrites",
		old:  "	w.loaded = err == nil\n", new: "	w.loaded = true\n",
	},
	{
		name: "a monitor of another root goes on", file: "monitor/record.go",
		test: "TestRunRefusesInvalidArgumentsAndRecords",
		old:  "	if err == nil && r.Root != root {", new: "	if err == nil && r.Root == \"\" {",
	},
	{
		name: "the record has no bound", file: "monitor/hysteresis.go", test: "TestManyFindings",
		old: "len(next) == maxOpen || bytes > maxOpenBytes {", new: "bytes > maxOpenBytes {",
	},
	{
		name: "a second call begins while one does not return", file: "monitor/eventcaller.go",
		test: "TestFunctionThatBlocks",
		old:  "	default:\n		return errBusy\n",
		new:  "	default:\n		c.busy = make(chan struct{}, 1)\n		c.busy <- struct{}{}\n",
	},
	{
		name: "consumers of a strict queue are waiters", file: "monitor/locks.go",
		test: "TestConsumersOfStrictQueueAreNoWaiters",
		old:  " || isQueue[parent] {", new: " || isQueue[parent] && false {",
	},
	{
		name: "former holders are remembered beside an unread directory", file: "monitor/locks.go",
		test: "TestFormerHoldersAreForgotten",
		old:  "seen || !l.isUnread(areaLocks, node) {", new: "seen || len(l.unread) == 0 {",
	},
	{
		name: "unread holds are remembered for ever", file: "monitor/locks.go", test: "TestFormerHoldersAreForgotten",
		old: "		if l.at.Sub(hold.seen) < rememberUnread {\n",
		new: "		if l.at.Sub(hold.seen) < 1000*rememberUnread {\n",
	},
	{
		name: "undecided problems are remembered for ever", file: "monitor/hysteresis.go",
		test: "TestUndecidedProblemsAreForgotten",
		old:  "!isOpen && s.undecided > maxUndecided {", new: "!isOpen && s.undecided > 1000*maxUndecided {",
	},
	{
		name: "a hold without waiters is long", file: "monitor/locks.go", test: "TestLongHold",
		old: "	if waiters > 0 && l.at.Sub(earliest)", new: "	if l.at.Sub(earliest)",
	},
	{
		name: "a standby has the gauges", file: "monitor/telemetry.go", test: "TestGauges",
		old: "	t.leading, t.seen, t.open = false, nil, nil", new: "	t.seen, t.open = nil, nil",
	},
	{
		name: "jobs are read one by one", file: "monitor/jobs.go", test: "TestRequestsOfALookAtLocksJobsAndQueues",
		old: "reports, err := scheduler.InspectAt(ctx, w.client, paths...)",
		new: "var reports []scheduler.JobReport\n	var err error\n	for _, path := range paths {\n		more, " +
			"e := scheduler.InspectAt(ctx, w.client, path)\n		reports, err = append(reports, more...), e\n	}",
	},
	{
		name: "a run that goes on ends the row of failed ones", file: "monitor/jobs.go",
		test: "TestARunUnderWayDoesNotEndARowOfFailedRuns",
		old:  "case run.Outcome == scheduler.Running:", new: "case false:",
	},
	{
		name: "what a queue's search could not read ends", file: "monitor/check.go",
		test: "TestUnreadableDirectory|TestAQueueBelowAnUnreadableDirectory",
		old: "err = errors.Join(l.addUnread(ctx, areaJobs, k.locks.root, err), l.addUnread(ctx, areaQueues, " +
			"k.locks.root, err))",
		new: "err = l.addUnread(ctx, areaJobs, k.locks.root, err)",
	},
	{
		name: "slow looks prevent the calls", file: "monitor/monitor.go",
		test: "TestLooksThatLastLongerThanTheInterval",
		old:  "		deadline = earliest //", new: "		_ = earliest //",
	},
}
