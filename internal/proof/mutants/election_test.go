package mutants

// electionMutants are the safeguards of package election.
var electionMutants = []mutant{
	{
		promise: "When an operator deletes a line with its directory",
		name:    "a leader whose node was deleted hands its place on", file: "internal/waitline/grant.go",
		pkg: "./election", test: "TestDeletedLeaderWakesNoNeighbour",
		old: "if errors.Is(g.Err(), framework.ErrNodeGone) {",
		new: "if errors.Is(g.Err(), framework.ErrNodeGone) && false {",
	},
	{
		promise: "A late transaction with the guard of a former holder comes before",
		name:    "the next candidate of a process leads before the leader's node is gone", file: "election/campaign.go",
		test: "TestNextTermBeginsBehindLateGuardedWrites",
		old:  "\tgrant.SetGuarded()\n",
		new:  "",
	},
	{
		promise: "A call that tries a lock",
		name:    "a leader that hands over believes a lagging server", file: "election/term.go",
		test: "TestTransferBehindALaggingServer",
		old:  "if err := recipe.Sync(ctx, t.client, t.path); err != nil {",
		new:  "if err := ctx.Err(); err != nil {",
	},
	{
		promise: "One leader at a time; a leader function does not run after its",
		name:    "Lead calls its function in a term that is over", file: "election/term.go",
		test: "TestLeadRunsNothingInATermThatIsOver",
		old:  "if within.Err() != nil {",
		new:  "if false {",
	},
	{
		promise: "One leader at a time; a leader function does not run after its",
		name:    "a leader that is disconnected when its term begins goes on", file: "election/term.go",
		test: "TestALeaderThatIsDisconnectedWhenItsTermBeginsStepsDown",
		old:  "\t\t\tt.stepDownUnlessConnected(s.State())\n",
		new:  "\t\t\t_ = s\n",
	},
	{
		promise: "A leader function starts after its term was counted",
		name:    "a term is counted again when the reply was lost", file: "election/term.go",
		test: "TestATermIsCountedOnceWhateverReplyIsLost",
		old:  "if old.Token == t.Token() {",
		new:  "if false {",
	},
	{
		promise: "A leader function starts after its term was counted",
		name:    "a term is counted without its guard", file: "election/termwriter.go",
		test: "TestAWinnerWhoseNodeIsGoneDoesNotLead|TestALeaderUpdatesItsMetadata",
		old:  "Multi(ctx, w.guard(), op)",
		new:  "Multi(ctx, framework.CheckOp(\"/\", framework.AnyVersion), op)",
	},
	{
		promise: "A transfer makes the named candidate the leader",
		name:    "a term is handed over without a look whether the successor is there", file: "election/transfer.go",
		test: "TestATransferToWhoHasLeftGoesToTheFirst",
		old:  "framework.CheckOp(s.node, framework.AnyVersion)}",
		new:  "framework.CheckOp(\"/\", framework.AnyVersion)}",
	},
	{
		promise: "A transfer makes the named candidate the leader",
		name:    "a hand-over that was applied is an error", file: "election/transfer.go",
		test: "TestATransferWhoseReplyIsLostIsDoneOnce",
		old:  "case refused.Index == ownOp && unknown:", new: "case refused.Index == ownOp && unknown && false:",
	},
	{
		promise: "A candidate whose checks of `WithHealth` each succeed within the",
		name:    "two checks run at once", file: "election/health.go",
		test: "TestACheckThatHangsIsAFailureAndIsAskedOnceAtATime|TestCampaignsOfOneElectionShareTheirChecks",
		old:  "\t\th.mu.Unlock()\n\t\tselect {\n",
		new:  "\t\th.running = nil\n\t\th.mu.Unlock()\n\t\tselect {\n",
	},
	{
		promise: "A waiting candidate sends no requests",
		name:    "a candidate of the same priority takes over", file: "election/preferred.go",
		test: "TestIdleCandidatesAskNothing",
		old:  "if priorityOf(name) <= w.priority &&",
		new:  "if priorityOf(name) < w.priority &&",
	},
	{
		promise: "An observer sees leaders in order and always gets the latest one",
		name:    "an observer reads without a sync",
		file:    "election/follow.go", test: "TestObserversSyncBeforeTheyRead",
		old: "if err := s.Sync(ctx, o.election.path); err != nil {", new: "if false {\n\t\tvar err error",
	},
}
