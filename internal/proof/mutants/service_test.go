package mutants

// serviceMutants are the safeguards of the service runner.
var serviceMutants = []mutant{
	{
		promise: "The parts of a service stop in order",
		name:    "the stages stop at the same time", file: "run.go", pkg: ".", test: "TestPartsStopInOrder",
		old: "		s.tasks.Add(p.stage, t.Stop)", new: "		s.tasks.Add(drain.Pool, t.Stop)",
	},
	{
		promise: "The parts of a service stop in order",
		name:    "an instance is registered before the others have started", file: "part.go", pkg: ".",
		test: "TestAnInstanceIsRegisteredLast",
		old:  "case <-s.othersStarted:", new: "default:",
	},
	{
		promise: "The parts of a service stop in order",
		name:    "a leader that has panicked is called again", file: "part.go", pkg: ".", test: "TestAPanicOfALeader",
		old: "				panicked = err\n				cancel()\n", new: "				panicked = nil\n",
	},
	{
		promise: "The parts of a service stop in order",
		name:    "modules stop in the order of fx", file: "internal/appmodule/module.go", test: "TestStagesStopInOrder",
		old: "return sequence.StopThrough(stopping, stage)", new: "return stop(stopping)",
	},
	{
		promise: "A service stops within its grace",
		name:    "a part is waited for without a limit", file: "internal/drain/drain.go", pkg: ".",
		test: "TestTheGraceEnds",
		old:  "	return context.WithTimeout(stopping, time.Duration(float64(time.Until(deadline))*forTask))",
		new:  "	return context.WithTimeout(stopping, time.Hour+time.Duration(float64(time.Until(deadline))*forTask))",
	},
	{
		promise: "A service stops within its grace",
		name:    "handlers have the queue's grace", file: "queue/work.go", pkg: ".",
		test: "TestRecipesKeepToTheGrace",
		old:  "drain.Grace(ctx, w.grace)\n", new: "max(w.grace, drain.Grace(ctx, w.grace))\n",
	},
	{
		promise: "A service is live while it can work",
		name:    "a service that drains is ready", file: "run.go", pkg: ".",
		test: "TestAServiceStartsWhileTheServersAreAway",
		old:  "	s.health.enter(draining)\n", new: "",
	},
	{
		promise: "A service is live while it can work",
		name:    "a service without a session is ready", file: "health.go", pkg: ".",
		test: "TestAServiceStartsWhileTheServersAreAway",
		old:  "s.State != framework.Connected && s.State", new: "false && s.State",
	},
	{
		promise: "A service is live while it can work",
		name:    "a service whose instance is not listed is ready", file: "run.go", pkg: ".",
		test: "TestReadyMeansListed",
		old:  "all, others := s.starting == 0, false", new: "all, others := true, false",
	},
}
