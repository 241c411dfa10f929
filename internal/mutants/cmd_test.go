package mutants

func init() {
	lists["cmd"] = []mutant{
		{
			name: "a look begins before the one that was given up is paid for", file: "cmd/lockstep/topdata.go", test: "TestLooksThatAreGivenUpCountAsWell",
			old: "err := r.pace.wait(ctx) // the look before may have been given up",
			new: "var err error",
		},
		{
			name: "top reads all that it lists at once", file: "cmd/lockstep/topdata.go", test: "TestTopSendsFiftyRequestsASecondAtMost",
			old: "rows = append(rows, one)\n\t\t}\n\t\tif err := r.pace.wait(ctx); err != nil {\n\t\t\treturn nil, err\n\t\t}",
			new: "rows = append(rows, one)\n\t\t}",
		},
		{
			name: "a warning reaches a terminal as it is", file: "cmd/lockstep/console.go", test: "TestNothingHostileIsPrinted",
			old: `Yellow("lockstep: warning:"), escapeUnprintable(fmt.Sprintf(format, args...)))`,
			new: `Yellow("lockstep: warning:"), fmt.Sprintf(format, args...))`,
		},
		{
			name: "an election's terms are not watched with it", file: "cmd/lockstep/treewatch.go", test: "TestWatchEscapesWhatOthersWrite",
			old: "all = append(all, w.root+suffix)",
			new: "_ = suffix",
		},
	}
}
