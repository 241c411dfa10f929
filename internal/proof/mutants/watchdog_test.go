package mutants

// watchdogMutants are the safeguards of package internal/watchdog.
var watchdogMutants = []mutant{
	{
		promise: "The watchdog closes no session while the process lives",
		name:    "a farewell is not heeded", file: "internal/watchdog/monitor.go",
		test: "TestClosedWatchdogLeavesTheSession",
		old:  "if p.closedByParent || p.session == nil {", new: "if p.session == nil {",
	},
	{
		promise: "A registered command and its process group are dead before the",
		name:    "the command of an ended lease lives on", file: "internal/watchdog/monitor.go",
		test: "TestACommandIsKilledAtItsLeasesEnd",
		old:  "\t\tc.leaseEnded = true\n\t\tif c.process != nil {\n\t\t\tc.process.killGroup()\n\t\t}\n",
		new:  "\t\tc.leaseEnded = true\n",
	},
	{
		promise: "A registered command and its process group are dead before the",
		name:    "only the process is killed, not its group", file: "internal/watchdog/commandprocess_linux.go",
		test: "TestACommandIsKilledAtItsLeasesEnd",
		old:  "	_ = t.signalGroup(unix.SIGKILL)\n", new: "",
	},
	{
		promise: "A registered command and its process group are dead before the",
		name:    "the session is closed before the commands are gone", file: "internal/watchdog/monitor.go",
		test: "TestASessionIsNotClosedBesideACommand",
		old: "\tif err := p.killCommands(time.Now().Add(p.session.Timeout)); err != nil {\n\t\treturn " +
			"err\n\t}\n\treturn p.session.closeOnServers(p.access)",
		new: "\tif err := p.session.closeOnServers(p.access); err != nil {\n\t\treturn err\n\t}\n\treturn " +
			"p.killCommands(time.Now().Add(p.session.Timeout))",
	},
	{
		promise: "A registered command and its process group are dead before the",
		name:    "a new watchdog is not told of the commands", file: "internal/watchdog/keeper.go",
		test: "TestAReplacedWatchdogKnowsTheCommands",
		old:  "\t\tif c.started != nil {\n\t\t\tall = append(all, *c.started)\n\t\t}\n", new: "",
	},
	{
		promise: "A wrong id or password closes no session",
		name:    "the session is closed beside a command that may run", file: "internal/watchdog/monitor.go",
		test: "TestUnknownCommandKeepsSession|TestUnidentifiableCommandMayRun",
		old:  "\t\tif c.unidentified {\n\t\t\treturn errCommandMayRun\n\t\t}\n", new: "\t\t_ = c.unidentified\n",
	},
	{
		promise: "A wrong id or password closes no session",
		name:    "another process of the same number is killed", file: "internal/watchdog/commandprocess_linux.go",
		test: "TestReusedPIDIsLeftAlone",
		old:  "if err == nil && found == id {", new: "if err == nil && found.pid == id.pid {",
	},
	{
		promise: "A wrong id or password closes no session",
		name:    "a session is closed without its password", file: "internal/watchdog/close.go",
		test: "TestOtherSessionsAreNotClosed",
		old:  "if s.ID == 0 || len(s.Password) == 0 {", new: "if s.ID == 0 {",
	},
	{
		promise: "No other process can open the socket",
		name:    "the socket is a pipe", file: "internal/watchdog/process_unix.go", test: "TestTheSocketCannotBeOpened",
		old: "ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|socketCloexec, 0)",
		new: "var ends [2]int\n\terr = unix.Pipe(ends[:])",
	},
	{
		promise: "No other process can open the socket",
		name:    "others of the user may look into the watchdog", file: "internal/watchdog/main_unix.go",
		test: "TestAWatchdogCannotBeTraced",
		old:  "\tif !canBeTraced {\n", new: "\tif canBeTraced {\n",
	},
	{
		promise: "The watchdog trusts no server that its process does not",
		name:    "a pool's constraint is left out",
		file:    "internal/watchdog/tls.go", test: "TestUnexportableTLSIsRefused",
		old: "if constraint.Kind() != reflect.Func || !constraint.IsNil() {",
		new: "if constraint.Kind() != reflect.Func {",
	},
}
