package mutants

func init() { lists["monitor"] = monitorMutants }

// monitorMutants are the safeguards of package monitor.
var monitorMutants = []mutant{
	{
		name: "a finding begins at its first look", file: "monitor/hysteresis.go", test: "TestManyWaiters",
		old: "isOpen || s.seen < h.begin {", new: "isOpen || s.seen < 1 {",
	},
	{
		name: "a finding ends at the first look without it", file: "monitor/hysteresis.go", test: "TestManyWaiters",
		old: "s.clean >= h.end &&", new: "s.clean >= 1 &&",
	},
	{
		name: "looks without a finding are counted together", file: "monitor/hysteresis.go", test: "TestManyWaiters",
		old: "s.since, s.clean = l.at, 0", new: "s.since = l.at",
	},
	{
		name: "what a look could not read ends", file: "monitor/hysteresis.go", test: "TestUnreadableDirectory|TestGrowingQueue",
		old: "seen || l.cannotTell(k) {", new: "seen {",
	},
	{
		name: "the next leader forgets how long a holder holds", file: "monitor/monitor.go", test: "TestNextLeaderKnowsLongHold",
		old: "		if !w.resumed {", new: "		if false {",
	},
	{
		name: "an event is told again after it was told", file: "monitor/monitor.go", test: "TestNextLeaderGoesOn|TestManyWaiters",
		old: "			f.Told, changed = true, true", new: "			changed = true",
	},
	{
		name: "an event is told before it is recorded", file: "monitor/monitor.go", test: "TestLeaderThatDiesWhileItTells",
		old: "		err = w.save(ctx)\n	}\n	return seen, err", new: "	}\n	return seen, err",
	},
	{
		name: "a record that was not written is believed", file: "monitor/monitor.go", test: "TestRecordThatAnotherWrites",
		old: "	w.loaded = err == nil\n", new: "	w.loaded = true\n",
	},
	{
		name: "a monitor of another root goes on", file: "monitor/record.go", test: "TestRunRefuses",
		old: "	if err == nil && r.Root != root {", new: "	if err == nil && r.Root == \"\" {",
	},
	{
		name: "the record has no bound", file: "monitor/hysteresis.go", test: "TestManyFindings",
		old: "len(next) == mostOpen || bytes > mostBytes {", new: "bytes > mostBytes {",
	},
	{
		name: "a second call begins while one does not return", file: "monitor/tell.go", test: "TestFunctionThatBlocks",
		old: "	default:\n		return errBusy\n", new: "	default:\n		t.busy = make(chan struct{}, 1)\n		t.busy <- struct{}{}\n",
	},
	{
		name: "a panic ends the program", file: "monitor/tell.go", test: "TestFunctionThatFails",
		old: "		if p := recover(); p != nil {", new: "		if p := any(nil); p != nil {",
	},
	{
		name: "consumers of a strict queue are waiters", file: "monitor/locks.go", test: "TestConsumersOfStrictQueueAreNoWaiters",
		old: " || queues[parent] {", new: " || queues[parent] && false {",
	},
	{
		name: "a hold without waiters is long", file: "monitor/locks.go", test: "TestLongHold",
		old: "	if waiters > 0 && l.at.Sub(longest)", new: "	if l.at.Sub(longest)",
	},
	{
		name: "a standby has the gauges", file: "monitor/telemetry.go", test: "TestGauges",
		old: "	t.leading, t.seen, t.open = false, nil, nil", new: "	t.seen, t.open = nil, nil",
	},
}
