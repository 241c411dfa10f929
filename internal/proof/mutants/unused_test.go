package mutants

func init() {
	lists["unused"] = []mutant{
		{
			name: "clean: each child looks through all names", file: "internal/unused/rules.go",
			test: "TestAWideDirectory",
			old:  "	_, has := slices.BinarySearch(f.names[dir], name)\n	return has\n",
			new:  "	return slices.Contains(f.names[dir], name)\n",
		},
		{
			name: "clean: an ACL of a directory's own does not matter", file: "internal/unused/acl.go",
			test: "TestADirectoryWithAnACLOfItsOwnStays",
			old:  " || !isSameACL(acls[path], acls[above])",
			new:  "",
		},
		{
			name: "clean: an ACL that may not be read does not matter", file: "internal/unused/acl.go",
			test: "TestAnACLThatMayNotBeRead",
			old:  "acls[path] == nil || acls[above] == nil || ",
			new:  "acls[path] != nil && acls[above] != nil && ",
		},
		{
			name: "clean: an ACL is not compared again", file: "internal/unused/delete.go",
			test: "TestAnACLOfASemaphoresDirectories",
			old:  "n.Stat.Aversion != was.Aversion || ",
			new:  "",
		},
		{
			name: "clean: any empty directory is unused", file: "internal/unused/rules.go",
			test: "TestOthersAreNeverTouched",
			old:  "\treturn len(names) == 0 && f.hasChild(dir, name+termSuffix)",
			new:  "\treturn len(names) == 0",
		},
		{
			name: "clean: data do not matter", file: "internal/unused/rules.go", test: "TestOthersAreNeverTouched",
			old: "n.Stat.EphemeralOwner == 0 && n.Stat.DataLength == 0",
			new: "n.Stat.EphemeralOwner == 0",
		},
		{
			name: "clean: a resized semaphore forgets its number", file: "internal/unused/rules.go",
			test: "TestOthersAreNeverTouched",
			old:  "if p.Declared != p.Permits {",
			new:  "if false {",
		},
		{
			name: "clean: fields of a later release are lost", file: "internal/unused/rules.go",
			test: "TestOthersAreNeverTouched",
			old:  "err != nil || len(unknown) > 0 || p.Declared < 1",
			new:  "err != nil || len(unknown) < 0 || p.Declared < 1",
		},
		{
			name: "clean: a semaphore's holders do not count", file: "internal/unused/rules.go", test: "TestUsersStay",
			old: "case d.Err == nil && d.Stat.NumChildren == 0 && f.isPlain(dir):",
			new: "case d.Err == nil:",
		},
		{
			name: "clean: contenders of other programs are orphans", file: "internal/unused/rules.go",
			test: "TestOthersAreNeverTouched",
			old:  "err != nil || owner.Owner == nil || owner.PID == nil || owner.Since == nil {",
			new:  "err != nil && false {",
		},
		{
			name: "clean: living contenders are orphans", file: "internal/unused/rules.go", test: "TestUsersStay",
			old: "if n.Err != nil || n.Stat.EphemeralOwner != 0 || n.Stat.NumChildren != 0 " +
				"{\n\t\t\treturn\n\t\t}\n\t\tif _, err",
			new: "if n.Err != nil || n.Stat.NumChildren != 0 {\n\t\t\treturn\n\t\t}\n\t\tif _, err",
		},
		{
			name: "clean: a job is deleted at once after its removal", file: "internal/unused/rules.go",
			old:       "now.Sub(job.Removed) < dayOfRest || ",
			new:       "",
			redundant: "the age of the record, which is as old as the removal, says the same",
		},
		{
			name: "clean: a job that was not removed", file: "internal/unused/rules.go", test: "TestRegisteredJobsStay",
			old: "if job.Removed.IsZero() || job.Paused.IsZero() || ",
			new: "if ",
		},
		{
			name: "clean: what needs a day needs none", file: "internal/unused/find.go", test: "TestNotesOfCounters",
			old: "wait = max(wait, dayOfRest)",
			new: "wait = max(wait, 0)",
		},
		{
			name: "clean: a machine's clock is as good as the servers'", file: "internal/unused/find.go",
			test: "TestRemovedJobs",
			old:  "needsDay && f.options.NoClock || ",
			new:  "",
		},
		{
			name: "clean: what may have been used just now is old", file: "internal/unused/find.go", test: "TestAge",
			old: "wait > 0 && (!known || ",
			new: "wait > 0 && (!known && false || ",
		},
		{
			name: "clean: nodes are not compared again", file: "internal/unused/delete.go",
			test: "TestNodeCreatedAnewStays|TestUseBetweenLookAndDeletion",
			old:  "return ErrChanged\n\t\t}\n\t}\n\tswitch missing {",
			new:  "missing += 0\n\t\t}\n\t}\n\tswitch missing {",
		},
		{
			name: "clean: a directory that was missing is not checked", file: "internal/unused/delete.go",
			test: "TestDirectoryThatComesBackIsSeen",
			old:  "for _, path := range l.absent {",
			new:  "for _, path := range l.absent[:0] {",
		},
		{
			name: "clean: a lost answer is a change by others", file: "internal/unused/delete.go", test: "TestFaults",
			old: "case sent && errors.Is(err, ErrGone):",
			new: "case sent && false && errors.Is(err, ErrGone):",
		},
		{
			name: "clean: a queue's removal goes on without its mark", file: "internal/unused/delete.go",
			test: "TestDroppedQueue",
			old:  "ops := []framework.Op{framework.CheckOp(l.mark, l.seen[l.mark].Version)}",
			new:  "ops := []framework.Op{}",
		},
		{
			name: "clean: a lost answer of a queue's removal is not looked up", file: "internal/unused/delete.go",
			test: "TestLostAnswersOfDroppedQueue",
			old:  "\t\tif sent {\n\t\t\tif err",
			new:  "\t\tif false && sent {\n\t\t\tif err",
		},
		{
			name: "clean: a job that is ahead of the clock is unused", file: "internal/unused/rules.go",
			test: "TestRemovedJobThatIsAheadOfTheClock",
			old:  "[]time.Time{job.Registered, job.Since, job.Last}",
			new:  "[]time.Time{job.Last}",
		},
		{
			name: "clean: a queue without a mark is dropped", file: "internal/unused/rules.go",
			test: "TestDroppedQueue",
			old:  "record.Recipe != \"queue\" || !record.Dropped {",
			new:  "record.Recipe != \"queue\" {",
		},
		{
			name: "clean: there is no bound", file: "internal/unused/find.go", test: "TestBounds",
			old: "if f.found.Looked >= f.options.MaxNodes {",
			new: "if false {",
		},
		{
			name: "clean: what may not be read is passed over", file: "internal/unused/find.go", test: "TestBounds",
			old: "f.found.Refused = append(f.found.Refused, path)",
			new: "_ = path",
		},
		{
			name: "clean: it deletes without being told to", file: "cmd/lockstep/clean.go",
			test: "TestCleanShowsAndDeletes",
			old:  "\t\tif c.yes {\n\t\t\terr := unused.Delete",
			new:  "\t\tif true {\n\t\t\terr := unused.Delete",
		},
	}
}
