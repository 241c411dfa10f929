package mutants

func init() { lists["watchdog"] = watchdogMutants }

// watchdogMutants are the safeguards of package internal/watchdog.
var watchdogMutants = []mutant{
	// The watchdog itself.
	{
		name: "the command of an ended lease lives on", file: "internal/watchdog/monitor.go",
		test: "TestACommandIsKilledAtItsLeasesEnd",
		old:  "\t\tc.leaseEnded = true\n\t\tif c.process != nil {\n\t\t\tc.process.killGroup()\n\t\t}\n",
		new:  "\t\tc.leaseEnded = true\n",
	},
	{
		name: "the session is closed beside a command that may run", file: "internal/watchdog/monitor.go",
		test: "TestUnknownCommandKeepsSession|TestUnidentifiableCommandMayRun",
		old:  "\t\tif c.unidentified {\n\t\t\treturn errCommandMayRun\n\t\t}\n", new: "\t\t_ = c.unidentified\n",
	},
	{
		name: "a command that cannot be identified has ended", file: "internal/watchdog/monitor.go",
		test: "TestUnidentifiableCommandMayRun",
		old:  "c.unidentified = !errors.Is(err, errNoSuchProcess)",
		new:  "c.unidentified = errors.Is(err, errCommandMayRun)",
	},
	{
		name: "a process without a start time has ended", file: "internal/watchdog/commandprocess_linux.go",
		test: "TestUnidentifiableCommandMayRun",
		old:  "return nil, errUnidentified\n	}\n	fd", new: "return nil, errNoSuchProcess\n	}\n	fd",
	},
	{
		name: "a lease becomes shorter", file: "internal/watchdog/monitor.go", test: "TestLeaseIsNotShortened",
		old: "c.leaseEnd = max(c.leaseEnd, m.end)", new: "c.leaseEnd = m.end",
	},
	{
		name: "another process of the same number is killed", file: "internal/watchdog/commandprocess_linux.go",
		test: "TestReusedPIDIsLeftAlone",
		old:  "if err == nil && found == id {", new: "if err == nil && found.pid == id.pid {",
	},
	{
		name: "only the process is killed, not its group", file: "internal/watchdog/commandprocess_linux.go",
		test: "TestACommandIsKilledAtItsLeasesEnd",
		old:  "	_ = t.signalGroup(unix.SIGKILL)\n", new: "",
	},
	{
		name: "the rest of a command's group is not waited for", file: "internal/watchdog/commandprocess_linux.go",
		test: "TestAGroupOutlivesItsLeader",
		old:  "return errors.Is(t.signalGroup(0), unix.ESRCH) || !isGroupRunning(int(t.pid))", new: "return true",
	},
	{
		name: "a farewell is not heeded", file: "internal/watchdog/monitor.go",
		test: "TestClosedWatchdogLeavesTheSession",
		old:  "if p.closedByParent || p.session == nil {", new: "if p.session == nil {",
	},
	{
		name: "the session is closed before the commands are gone", file: "internal/watchdog/monitor.go",
		test: "TestASessionIsNotClosedBesideACommand",
		old: "\tif err := p.killCommands(time.Now().Add(p.session.Timeout)); err != nil {\n\t\treturn " +
			"err\n\t}\n\treturn p.session.closeOnServers(p.access)",
		new: "\tif err := p.session.closeOnServers(p.access); err != nil {\n\t\treturn err\n\t}\n\treturn " +
			"p.killCommands(time.Now().Add(p.session.Timeout))",
	},
	{
		name: "a command that starts after its lease's end lives on", file: "internal/watchdog/monitor.go",
		test: "TestProcessRegisteredAfterItsLeaseIsKilled",
		old:  "\tif c.leaseEnded {\n\t\tt.killGroup()\n\t}\n", new: "",
	},
	{
		name: "a lease's end is acted upon before what was said is heard", file: "internal/watchdog/wait_linux.go",
		test: "TestMessagesBeforeALeaseEndAreReadFirst", old: "return fds[0].Revents != 0",
		new: "return fds[1].Revents == 0",
	},

	{
		name: "the socket is a pipe", file: "internal/watchdog/process_unix.go", test: "TestTheSocketCannotBeOpened",
		old: "ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|socketCloexec, 0)",
		new: "var ends [2]int\n\terr = unix.Pipe(ends[:])",
	},
	{
		name: "others of the user may look into the watchdog", file: "internal/watchdog/main_unix.go",
		test: "TestAWatchdogCannotBeTraced",
		old:  "\tif !canBeTraced {\n", new: "\tif canBeTraced {\n",
	},
	{
		name: "any value of the variable makes a watchdog", file: "internal/watchdog/process_unix.go",
		test: "TestTheVariableMakesNoWatchdog",
		old:  "return is != \"\" && is == socketNumber(socketFD)", new: "return is != \"\"",
	},
	{
		name: "a pool's constraint is left out", file: "internal/watchdog/tls.go", test: "TestUnexportableTLSIsRefused",
		old: "if constraint.Kind() != reflect.Func || !constraint.IsNil() {",
		new: "if constraint.Kind() != reflect.Func {",
	},

	// What the parent tells it.
	{
		name: "the clock is read after the rest of the lease", file: "internal/watchdog/keeper.go",
		test: "TestTheClockIsReadBeforeTheLease",
		old: "\tat := leaseClock() // first: if this process stops here, the end becomes earlier, not " +
			"later\n\tuntil := at + left()\n",
		new: "\trest := left()\n\tuntil := leaseClock() + rest\n",
	},
	{
		name: "the session of an earlier epoch is followed", file: "internal/watchdog/keeper.go",
		test: "TestAnEarlierSessionIsNotFollowed",
		old:  "	if k.session != nil && k.session.Epoch > s.Epoch {\n		return\n	}\n", new: "",
	},
	{
		name: "a new watchdog is not told of the commands", file: "internal/watchdog/keeper.go",
		test: "TestAReplacedWatchdogKnowsTheCommands",
		old:  "\t\tif c.started != nil {\n\t\t\tall = append(all, *c.started)\n\t\t}\n", new: "",
	},
	{
		name: "a watchdog that has ended is not replaced", file: "internal/watchdog/keeper.go",
		test: "TestAKilledWatchdogIsReplaced",
		old:  "if errors.Is(err, ErrUnsupported) || !k.waitToRestart(pause) {",
		new:  "if err == nil || errors.Is(err, ErrUnsupported) || !k.waitToRestart(pause) {",
	},
	{
		name: "a stopped watchdog is waited for", file: "internal/watchdog/keeper.go",
		test: "TestStoppedWatchdogDoesNotDelayItsParent",
		old:  "\t\tk.current.killProcess()\n\t\tk.current = nil\n", new: "",
	},

	// The close of a dead process's session.
	{
		name: "the session of another id is closed", file: "internal/watchdog/close.go",
		test: "TestServerAnsweringWithOtherSessionIsLeft",
		old:  "case answer.Session != s.ID:", new: "case answer.Session != s.ID && answer.Timeout <= 0:",
	},
	{
		name: "a session is closed without its password", file: "internal/watchdog/close.go",
		test: "TestOtherSessionsAreNotClosed",
		old:  "if s.ID == 0 || len(s.Password) == 0 {", new: "if s.ID == 0 {",
	},
	{
		name: "the tries end with the first round", file: "internal/watchdog/close.go",
		test: "TestASessionIsClosedByALaterRound",
		old:  "if time.Now().Add(pause).After(until) || ctx.Err() != nil {",
		new:  "if until.Before(time.Now().Add(time.Hour)) {",
	},
	{
		name: "a session that was taken up is tried for no longer", file: "internal/watchdog/close.go",
		test: "TestTriesLastAsLongAsTheSession",
		old:  "			until = time.Now().Add(timeout)\n", new: "",
	},
	{
		name: "the tries have no end", file: "internal/watchdog/close.go", test: "TestTriesLastAsLongAsTheSession",
		old: "if time.Now().Add(pause).After(until) || ctx.Err() != nil {",
		new: "if time.Now().Add(pause).After(until) {",
	},
	{
		name: "credentials come after the close", file: "internal/watchdog/close.go", test: "TestCredentialsComeFirst",
		old: "	for _, c := range a.Auth {\n", new: "	for _, c := range a.Auth[:0] {\n",
	},
}
