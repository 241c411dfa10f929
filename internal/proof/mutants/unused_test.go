package mutants

// unusedMutants are the safeguards of package internal/unused.
var unusedMutants = []mutant{
	{
		promise: "`lockstep clean` deletes only unused nodes",
		name:    "clean: an ACL of a directory's own does not matter", file: "internal/unused/acl.go",
		test: "TestADirectoryWithAnACLOfItsOwnStays",
		old:  " || !isSameACL(acls[path], acls[above])",
		new:  "",
	},
	{
		promise: "`lockstep clean` deletes only unused nodes",
		name:    "clean: any empty directory is unused", file: "internal/unused/rules.go",
		test: "TestOthersAreNeverTouched",
		old:  "\treturn len(names) == 0 && f.hasChild(dir, name+termSuffix)",
		new:  "\treturn len(names) == 0",
	},
	{
		promise: "`lockstep clean` deletes only unused nodes",
		name:    "clean: data do not matter", file: "internal/unused/rules.go", test: "TestOthersAreNeverTouched",
		old: "n.Stat.EphemeralOwner == 0 && n.Stat.DataLength == 0",
		new: "n.Stat.EphemeralOwner == 0",
	},
	{
		promise: "`lockstep clean` deletes only unused nodes",
		name:    "clean: a resized semaphore forgets its number", file: "internal/unused/rules.go",
		test: "TestOthersAreNeverTouched",
		old:  "if p.Declared != p.Permits {",
		new:  "if false {",
	},
	{
		promise: "`lockstep clean` deletes only unused nodes",
		name:    "clean: a job that was not removed", file: "internal/unused/rules.go", test: "TestRegisteredJobsStay",
		old: "if job.Removed.IsZero() || job.Paused.IsZero() || ",
		new: "if ",
	},
	{
		promise: "`lockstep clean` deletes only unused nodes",
		name:    "clean: a machine's clock is as good as the servers'", file: "internal/unused/find.go",
		test: "TestRemovedJobs",
		old:  "needsDay && f.options.NoClock || ",
		new:  "",
	},
	{
		promise: "`lockstep clean` deletes only unused nodes",
		name:    "clean: nodes are not compared again", file: "internal/unused/delete.go",
		test: "TestNodeCreatedAnewStays|TestUseBetweenLookAndDeletion",
		old:  "return ErrChanged\n\t\t}\n\t}\n\tswitch missing {",
		new:  "missing += 0\n\t\t}\n\t}\n\tswitch missing {",
	},
	{
		promise: "`lockstep clean` deletes only unused nodes",
		name:    "clean: a queue's removal goes on without its mark", file: "internal/unused/delete.go",
		test: "TestDroppedQueue",
		old:  "ops := []framework.Op{framework.CheckOp(l.mark, l.seen[l.mark].Version)}",
		new:  "ops := []framework.Op{}",
	},
	{
		promise: "`lockstep clean` deletes only unused nodes",
		name:    "clean: it deletes without being told to", file: "internal/cli/clean/clean.go",
		pkg: "./cmd/lockstep", test: "TestCleanShowsAndDeletes",
		old: "\t\tif c.yes {\n\t\t\terr := unused.Delete",
		new: "\t\tif true {\n\t\t\terr := unused.Delete",
	},
}
