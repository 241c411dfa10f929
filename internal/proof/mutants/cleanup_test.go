package mutants

// The cleanups of all packages: they outlive their context, end after a time of their own, and tell
// what the servers have not confirmed.
func init() {
	lists["cleanup"] = []mutant{
		{
			name: "a cleanup ends with its context", file: "framework/client.go",
			test: "TestCloseWaitsAfterTheEndOfItsContext",
			old:  "context.WithTimeoutCause(context.WithoutCancel(ctx), bound,",
			new:  "context.WithTimeoutCause(ctx, bound,",
		},
		{
			name: "a deadline that has passed ends a cleanup", file: "framework/client.go", test: "TestTimeOfACleanup",
			old: "left := time.Until(deadline); left > 0 {", new: "left := time.Until(deadline); true {",
		},
		{
			name: "a deadline does not shorten a cleanup", file: "framework/client.go", test: "TestTimeOfACleanup",
			old: "bound = min(bound, left)", new: "_ = left",
		},
		{
			name: "a cleanup lasts as long as if the servers had granted more", file: "framework/client.go",
			test: "TestTimeOfACleanup",
			old:  "bound = min(bound, c.granted/cleanupsInTimeout)", new: "bound = min(bound, c.granted)",
		},
		{
			name: "Close waits without end", file: "framework/client.go", test: "TestCloseEndsAfterItsTime",
			old: "	c.beginClose()\n	ctx, cancel := c.CleanupContext(ctx)",
			new: "	c.beginClose()\n	ctx, cancel := context.WithCancel(context.Background())",
		},
		{
			name: "a release of a lost session is confirmed", file: "framework/primitives.go", pkg: "./locks",
			test: "TestReleaseIsACleanup",
			old:  "		d.err = context.Cause(s.ctx)\n", new: "",
		},
		{
			name: "a release does not tell a refusal", file: "framework/deletions.go", pkg: "./locks",
			test: "TestReleaseTellsARefusal",
			old:  "		d.refusal.Store(&err)\n", new: "",
		},
		{
			name: "a release without an answer is confirmed", file: "locks/lease.go", test: "TestReleaseIsACleanup",
			old: "return failure.Unconfirmed(cmp.Or(p.err(), failure.Ended(ctx)))", new: "return nil",
		},
		{
			name: "a release ends with its context", file: "locks/lease.go",
			test: "TestReleaseIsACleanup|TestDoReleasesAfterTheEndOfItsContext",
			old:  "client.CleanupContext(ctx)", new: "context.WithTimeout(ctx, client.Config().CleanupTimeout)",
		},
		{
			name: "Resign does not tell what is not confirmed", file: "election/term.go", test: "TestResignIsACleanup",
			old: "return failure.Wrap(\"resign\", t.path, err)", new: "_ = err\n	return nil",
		},
		{
			name: "Leave does not tell that the session was lost", file: "members/membership.go",
			test: "TestLeaveIsACleanup",
			old:  "m.unlisted, m.deletion.Err)", new: "m.unlisted, nil)",
		},
		{
			name: "Close does not tell that the session was lost", file: "registry/registration.go",
			test: "TestCloseOfARegistrationIsACleanup",
			old:  "g.tasks.Done(), g.deletion.Err)", new: "g.tasks.Done(), nil)",
		},
		{
			name: "Drain does not linger once its context has ended", file: "registry/registration.go",
			test: "TestDrainGoesOnAfterTheEndOfItsContext",
			old:  "recipe.Pause(g.ctx, linger)", new: "recipe.Pause(ctx, linger)",
		},
		{
			name: "a cleanup ends with its context in recipes", file: "internal/recipe/cleanup.go", pkg: "./queue",
			test: "TestCloseIsACleanup",
			old:  "client.CleanupContext(ctx)", new: "context.WithCancel(ctx)",
		},
		{
			name: "the note of a counter stays after the end of the context", file: "ids/counter.go",
			test: "TestCloseOfACounterDeletesItsNote",
			old:  "	ctx, cancel := c.client.CleanupContext(ctx)\n",
			new:  "	ctx, cancel := context.WithCancel(ctx)\n",
		},
		{
			name: "a grace lasts until the stop timeout is over", file: "internal/appmodule/module.go",
			pkg: "./workflow/workflowfx", test: "TestStopBeforeTheEndOfTheGrace",
			old: "time.Until(deadline)*3/4", new: "time.Until(deadline)",
		},
	}
}
