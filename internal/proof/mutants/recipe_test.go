package mutants

func init() {
	lists["recipe"] = []mutant{
		{
			name: "a panic of the user's function ends the process", file: "internal/usercode/usercode.go",
			test: "TestEachEndOfAFunction",
			old:  "if v := recover(); v != nil {", new: "if v := any(nil); v != nil {",
		},
		{
			name: "a function that ends its goroutine has succeeded", file: "internal/usercode/usercode.go",
			test: "TestEachEndOfAFunction",
			old:  "err := fmt.Errorf(\"%w: it has ended its goroutine (runtime.Goexit)\", panicked)",
			new:  "var err error",
		},
		{
			name: "the loop ends with its session", file: "internal/recipe/session.go",
			test: "TestOnSessionGoesOnWithTheNextSession",
			old:  "case errors.Is(err, framework.ErrSessionLost) && s.Err() != nil:\n\t\t\tcontinue",
			new:  "case errors.Is(err, framework.ErrSessionLost) && s.Err() != nil:\n\t\t\treturn err",
		},
		{
			name: "the loop ends when its step wants another try", file: "internal/recipe/session.go",
			test: "TestOnSessionClassifiesErrors",
			old:  "!errors.Is(err, ErrAgain) && ",
			new:  "true && ",
		},
		{
			name: "the loop hides why its context ended", file: "internal/recipe/session.go",
			test: "TestOnSessionEndsWithItsContext",
			old:  "case ctx.Err() != nil:\n\t\t\treturn failure.Ended(ctx)",
			new:  "case ctx.Err() != nil:\n\t\t\treturn err",
		},
		{
			name: "a wait outlasts the session", file: "internal/recipe/wait.go",
			test: "TestWaitEndsWithTheFirstSource",
			old:  "case <-within.Done():",
			new:  "case <-context.Background().Done():",
		},
		{
			name: "a newer release's record is taken for this one's", file: "internal/recipe/record.go",
			test: "TestUnreadableRecord",
			old:  "case version > newest:",
			new:  "case false:",
		},
		{
			name: "unknown fields are dropped", file: "internal/recipe/record.go", test: "TestRecordKeepsUnknownFields",
			old: "object = appendFields(object, slices.Concat(quoted, []byte(\":\"), u[name]))",
			new: "_ = quoted",
		},
		{
			name: "a late answer moves the ensemble's clock", file: "internal/recipe/clock.go",
			test: "TestEnsembleClockIgnoresAgreeingAnswer",
			old:  "case c.estimateAt(requested).After(stamp):",
			new:  "case true:",
		},
		{
			name: "the latest time is the estimate", file: "internal/recipe/clock.go",
			test: "TestEnsembleClockStaysWithinLatest",
			old:  "return c.estimateAt(now).Add(c.behind)",
			new:  "return c.estimateAt(now)",
		},
		{
			name: "Done does not wait for tasks that tasks start", file: "internal/background/tasks.go",
			test: "TestDoneWaitsForTasksOfTasks",
			old:  "if t.closing && t.running == 0 {\n\t\treturn false",
			new:  "if t.closing {\n\t\treturn false",
		},
		{
			name: "a search goes on for ever", file: "internal/recipe/find.go", pkg: "./scheduler",
			old:  "case !next.listed && f.listedCount == maxDirectories:",
			new:  "case false:",
			test: "TestFindYieldsSchedulersAtAnyDepth",
		},
		{
			name: "a search ends at what is forbidden", file: "internal/recipe/find.go",
			old: "if !yield(Found{}, failure.Wrap(\"find\", next.path, next.err)) || !errors.Is(next.err, " +
				"framework.ErrNoAuth) {",
			new:  "if !yield(Found{}, failure.Wrap(\"find\", next.path, next.err)) || true {",
			test: "TestFindWalksInOrderPastForbiddenNodes",
		},
	}
}
