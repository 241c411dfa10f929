package mutants

func init() { lists["modules"] = moduleMutants }

// moduleMutants are the safeguards of the fx modules, of who campaigns for a scheduler's jobs, and
// of ids that a queue would not remember.
var moduleMutants = []mutant{
	{
		name: "a member with spread jobs alone campaigns", file: "scheduler/leadership.go",
		test: "TestAMemberWithSpreadJobsAloneStaysOutOfTheElection",
		old:  "return j.Placement != Spread", new: "return j != nil",
	},
	{
		name: "a member goes on campaigning without leader jobs", file: "scheduler/leadership.go",
		test: "TestAMemberResignsWhenItsLastLeaderJobIsRemoved",
		old:  "for hasLeaderJobs() {\n\t\t\tselect", new: "for {\n\t\t\tselect",
	},
	{
		name: "an application's scheduler does not wait for its first job", file: "scheduler/schedulerfx/module.go",
		test: "TestModuleWaitsForTheFirstJob",
		old:  "append([]scheduler.Option{scheduler.WithWaitForJobs()}, p.Options...)...", new: "p.Options...",
	},
	{
		name: "an application's logger is ignored", file: "framework/frameworkfx/module.go",
		test: "TestAnAppsClientLogsToTheAppsLogger",
		old:  "if p.Logger != nil {", new: "if false {",
	},
	{
		name: "an id goes into a queue that does not remember it", file: "queue/writer.go",
		test: "TestWithIDIsRefusedWithoutDedup",
		old:  "requests = w.failMatching(requests, hasID, errNoDedup)", new: "_ = errNoDedup",
	},
}
