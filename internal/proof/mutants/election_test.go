package mutants

func init() { lists["election"] = electionMutants }

// electionMutants are the safeguards of package election.
var electionMutants = []mutant{
	{
		name: "a campaign that fails waits for its node for as long as that stays", file: "election/campaign.go",
		test: "TestACampaignFailsThoughItsNodeStays",
		old:  "context.WithTimeout(ctx, e.client.Config().CleanupTimeout)", new: "context.WithCancel(ctx)",
	},
	{
		name: "a campaign has no link to the leader's", file: "election/campaign.go",
		test: "TestACampaignLinksToTheLeaders",
		old:  "\te.linkToLeader(ctx)\n", new: "",
	},
	{
		name: "a term is counted again when the reply was lost", file: "election/term.go",
		test: "TestATermIsCountedOnceWhateverReplyIsLost",
		old:  "if old.Token == t.Token() {",
		new:  "if false {",
	},
	{
		name: "a term is counted without its guard", file: "election/termwriter.go",
		test: "TestAWinnerWhoseNodeIsGoneDoesNotLead|TestALeaderUpdatesItsMetadata",
		old:  "Multi(ctx, w.guard(), op)",
		new:  "Multi(ctx, framework.CheckOp(\"/\", framework.AnyVersion), op)",
	},
	{
		name: "a record is read without a sync after a write of unknown outcome", file: "election/termwriter.go",
		test: "TestAnUpdateIsWrittenBehindOneWhoseOutcomeNobodyAwaited",
		old:  "\tif w.doubtful {",
		new:  "\tif false {",
	},
	{
		name: "a refused record is written again", file: "election/termwriter.go",
		test: "TestACampaignFailsWhenTheQuotaRefusesItsRecord",
		old:  "case recipe.IsConflict(refused.Err):",
		new:  "case true:",
	},
	{
		name: "a record is written again without a pause", file: "election/termwriter.go",
		test: "TestAnUpdatePausesBetweenConflicts",
		old:  "if pauses.Wait(ctx, began) != nil {",
		new:  "if pauses.Client == nil || began.IsZero() {",
	},
	{
		name: "a term is handed over without a look whether the successor is there", file: "election/transfer.go",
		test: "TestATransferToWhoHasLeftGoesToTheFirst",
		old:  "framework.CheckOp(s.node, framework.AnyVersion)}",
		new:  "framework.CheckOp(\"/\", framework.AnyVersion)}",
	},
	{
		name: "a hand-over that was applied is an error", file: "election/transfer.go",
		test: "TestATransferWhoseReplyIsLostIsDoneOnce",
		old:  "case refused.Index == ownOp && unknown:", new: "case refused.Index == ownOp && unknown && false:",
	},
	{
		name: "a hand-over ends with its caller's context", file: "election/term.go",
		test: "TestATransferIsFinishedWhenLeadsContextHasEnded",
		old:  "t.client.CleanupContext(ctx)", new: "context.WithCancel(ctx)",
	},
	{
		name: "a term that is over takes a successor", file: "election/term.go", test: "TestOfTransfersAtOnceOneIsDone",
		old: "if err := t.Err(); err != nil {\n\t\treturn false, err\n\t}\n\tt.successor = s",
		new: "t.successor = s",
	},
	{
		name: "a term takes a successor and ends in two steps", file: "election/term.go",
		test: "TestOfTransfersAtOnceOneIsDone",
		old:  "t.successor = s\n",
		new: "t.successor = s\n\tt.mu.Unlock()\n\tpaused, stop := context.WithTimeout(context.Background(), " +
			"1e6)\n\t<-paused.Done()\n\tstop()\n\tt.mu.Lock()\n",
	},
	{
		name: "a transfer in a term that is over finds no candidate", file: "election/term.go",
		test: "TestTransferReportsEndOfTermDuringList",
		old:  "if err := t.Err(); err != nil { // the line changes when a term ends\n\t\t\treturn err\n\t\t}",
		new:  "",
	},
	{
		name: "a hand-over is tried with an ended lease", file: "election/transfer.go",
		old:       "if err := own.Err(); err != nil {",
		new:       "if false {\n\t\tvar err error",
		redundant: "the context of the transaction has no time left then; only the error's text differs",
	},
	{
		name: "Lead calls its function in a term that is over", file: "election/term.go",
		test: "TestLeadRunsNothingInATermThatIsOver",
		old:  "if within.Err() != nil {",
		new:  "if false {",
	},
	{
		name: "Lead's context is derived by AfterFunc alone", file: "election/term.go",
		test: "TestLeadRunsNothingInATermThatIsOver",
		old:  "if ctx.Err() != nil { // AfterFunc",
		new:  "if false { // AfterFunc",
	},
	{
		name: "a function that returns at once campaigns at once", file: "election/campaign.go",
		test: "TestLeadPausesAfterTermsOfNoTime",
		old:  "case err == nil && time.Since(term.began) < briefTerm && !errors.Is(term.Err(), ErrTransferred):",
		new:  "case false:",
	},
	{
		name: "Lead gives a term up before its function has returned", file: "election/term.go",
		test: "TestResignWithinLeadWaitsForTheFunction",
		old:  "t.led = true",
		new:  "t.led = false",
	},
	{
		name: "a term is left while its watchers go on", file: "election/term.go",
		old:       "\t\tt.watches.Wait()\n",
		new:       "",
		redundant: "they end with the term's context, and what they do after that is refused; waiting only tidies up",
	},
	{
		name: "an observer reads without a sync", file: "election/observe.go", test: "TestObserversSyncBeforeTheyRead",
		old: "if err := s.Sync(ctx, o.election.path); err != nil {", new: "if false {\n\t\tvar err error",
	},
	{
		name: "an observer syncs for a leader that has recorded its term", file: "election/observe.go",
		test: "TestAnObserverSyncsOnce",
		old:  "			grace.Stop()\n", new: "",
	},
	{
		name: "a leader is told as uncounted without a second look", file: "election/observe.go",
		test: "TestAnUncountedLeaderIsLookedAtAgainBeforeItIsTold",
		old:  "if err := s.Sync(ctx, node); err != nil {", new: "if false {\n\t\t\t\tvar err error",
	},
	{
		name: "a winner is told before it has counted its term", file: "election/observe.go",
		test: "TestALeaderThatCountsNoTermsIsTold",
		old:  "for known := false; ; {", new: "for known := true; ; {",
	},
	{
		name: "an observer does not watch the leader's end", file: "election/observe.go",
		test: "TestObserveFollowsTheLeaders",
		old:  "case <-end.C():", new: "case <-(chan struct{})(nil):",
	},
	{
		name: "a candidate of the same priority takes over", file: "election/preferred.go",
		test: "TestIdleCandidatesAskNothing",
		old:  "if priorityOf(name) <= w.priority &&",
		new:  "if priorityOf(name) < w.priority &&",
	},
	{
		name: "a preferred candidate does not heed the least term", file: "election/preferred.go",
		test: "TestTheMostPreferredTakesOver",
		old:  "p.due.Before(w.earliest)",
		new:  "false",
	},
	{
		name: "a preferred candidate outside the line keeps others out", file: "election/preferred.go",
		test: "TestAPreferredNodeOutsideTheLineKeepsNobodyOut",
		old:  "for _, p := range due {", new: "for _, p := range due[:1] {",
	},
	{
		name: "a leader that is disconnected when its term begins goes on", file: "election/term.go",
		test: "TestALeaderThatIsDisconnectedWhenItsTermBeginsStepsDown",
		old:  "\t\t\tt.stepDownUnlessConnected(s.State())\n",
		new:  "\t\t\t_ = s\n",
	},
	{
		name: "a leader steps down at another session's change", file: "election/term.go",
		old: "if c.SessionID == t.Session() {",
		new: "if c.SessionID != 0 {",
		redundant: "the changes of the session before come round trips before a term of the next one begins, unless " +
			"the runtime " +
			"holds their goroutine up for so long; no test can make it do so",
	},
	{
		name: "two checks run at once", file: "election/health.go",
		test: "TestACheckThatHangsIsAFailureAndIsAskedOnceAtATime|TestCampaignsOfOneElectionShareTheirChecks",
		old:  "\t\th.mu.Unlock()\n\t\tselect {\n",
		new:  "\t\th.running = nil\n\t\th.mu.Unlock()\n\t\tselect {\n",
	},
	{
		name: "a campaign waits for the check of another one before its own", file: "election/health.go",
		test: "TestCampaignsOfOneElectionShareTheirChecks",
		old:  "if call.ctx.Err() == nil {",
		new:  "if call.ctx.Err() == nil && call.waiting == 0 {",
	},
	{
		name: "the end of a campaign ends the check of others", file: "election/health.go",
		test: "TestTheEndOfACampaignFailsNoCheckOfAnother",
		old:  "context.WithTimeout(context.WithoutCancel(values), h.period)",
		new:  "context.WithTimeout(values, h.period)",
	},
	{
		name: "a check goes on though no campaign waits for it", file: "election/health.go",
		test: "TestTheEndOfACampaignFailsNoCheckOfAnother",
		old:  "\t\tcall.cancel()\n",
		new:  "",
	},
	{
		name: "a leader whose node was deleted hands its place on", file: "election/place.go",
		test: "TestDeletedLeaderWakesNoNeighbour",
		old:  "if errors.Is(p.Err(), framework.ErrNodeGone) {",
		new:  "if errors.Is(p.Err(), framework.ErrNodeGone) && false {",
	},
	{
		name: "the next candidate of a process leads before the leader's node is gone", file: "election/place.go",
		test: "TestNextTermBeginsBehindLateGuardedWrites",
		old:  "p.contender.LeaveGuarded(nil)",
		new:  "p.contender.Leave(nil)",
	},
	{
		name: "a leader that hands over believes a lagging server", file: "election/term.go",
		test: "TestTransferBehindALaggingServer",
		old:  "if err := recipe.Sync(ctx, t.client, t.path); err != nil {",
		new:  "if err := ctx.Err(); err != nil {",
	},
	{
		name: "who requests a transfer believes a lagging server", file: "election/transferrequest.go",
		test: "TestTransferBehindALaggingServer",
		old:  "if err := recipe.Sync(ctx, e.client, e.path); err != nil {",
		new:  "_ = recipe.Sync\n\tif err := ctx.Err(); err != nil {",
	},
	{
		name: "a term is visible before its watches begin", file: "election/campaign.go",
		test: "TestTermIsVisibleOnceItsWatchesHaveBegun",
		old:  "\tended := e.tel.startTerm(t.began)\n",
		new:  "\te.current.Store(t)\n\tended := e.tel.startTerm(t.began)\n",
	},
	{
		name: "a campaign waits beyond its context for the deletion of its node", file: "election/campaign.go",
		test: "TestCampaignEndsWithItsContextWhileItsTermIsRecorded",
		old:  "context.WithTimeout(ctx, e.client.Config().CleanupTimeout)",
		new:  "context.WithTimeout(context.WithoutCancel(ctx), e.client.Config().CleanupTimeout)",
	},
	{
		name: "a request for a transfer waits for its deletion without end", file: "election/transferrequest.go",
		test: "TestRequestForATransferEndsThoughItsNodeStays|TestRequestForATransferEndsWhileDisconnected",
		old:  "e.client.CleanupContext(ctx)",
		new:  "context.WithCancel(context.WithoutCancel(ctx))",
	},
	{
		name: "a waiting candidate that was refused gives up", file: "election/waiting.go",
		test: "TestARefusedWaitingCandidateDescribesItselfLater",
		old:  ", !m.listed && m.name == requestName:",
		new:  ", !m.listed:",
	},
	{
		name: "an unreadable node ends the watch for preferred candidates", file: "election/preferred.go",
		test: "TestUnreadableWaitingNodesAreSkipped",
		old:  "if w.waiting.skipsUnreadable(name, err) {",
		new:  "if false {",
	},
	{
		name: "an unreadable node ends the list of candidates", file: "election/waiting.go",
		test: "TestUnreadableWaitingNodesAreSkipped",
		old:  "case g.skipsUnreadable(name, err):",
		new:  "case false:",
	},
	{
		name: "an unreadable node is logged with each list", file: "election/waiting.go",
		test: "TestUnreadableWaitingNodesAreSkipped",
		old:  "if known {\n\t\treturn true",
		new:  "if known && false {\n\t\treturn true",
	},
	{
		name: "a refused request for a transfer waits", file: "election/transferrequest.go",
		test: "TestRefusedRequestForATransferFails",
		old:  "\t\t\tstop()\n",
		new:  "",
	},
	{
		name: "a candidate whose node was deleted hands its place on", file: "election/campaign.go",
		test: "TestDeletedCandidateWakesNoNeighbour",
		old:  "\t\tp.endHold(err)\n",
		new:  "",
	},
	{
		name: "a leader is listed as waiting", file: "election/campaign.go",
		test: "TestCandidatesTellOfThemselvesWhileTheyWait",
		old:  "\t\t\tdescribed.leave()\n",
		new:  "\t\t\t_ = described\n",
	},
	{
		name: "a constructor of another type is dropped", file: "internal/appmodule/module.go",
		pkg:  "./election/electionfx",
		test: "TestModuleRefusesConstructorsOfOtherTypes", old: "f.Out(0) != one && f.Out(0) != reflect.SliceOf(one):",
		new: "false:",
	},
	{
		name: "a request that was done is done again", file: "election/preferred.go",
		test: "TestARequestForAnotherOfTheSameIDIsDoneOnce",
		old:  "if p.requested && p.id == w.id {", new: "if false {",
	},
}
