package mutants

func init() { lists["barrier"] = barrierMutants }

// barrierMutants are the safeguards of package barrier.
var barrierMutants = []mutant{
	{
		name: "a barrier that is made again has the same directory", file: "barrier/membername.go",
		test: "TestRoundOfARemadeBarrierEnds|TestLeavingARemadeBarrier",
		old:  "return directoryPrefix + uuid.NewString()", new: "return directoryPrefix + uuid.Nil.String()",
	},
	{
		name: "the end of a round does not check whose round it is", file: "barrier/roundend.go",
		test: "TestEndOfARoundOfARemadeBarrier",
		old:  ", framework.CheckOp(st.in, framework.AnyVersion))", new: ")",
	},
	{
		name: "a persistent node is waited for like a member's", file: "barrier/roundend.go",
		test: "TestNodesThatAreNoMembersAreRefused",
		old:  "	if st.EphemeralOwner == 0 {", new: "	if st.EphemeralOwner == 1 {",
	},
	{
		name: "a round of any numbers is believed", file: "barrier/storedbarrier.go",
		test: "TestRoundsThatCannotBeAreRefused",
		old:  "!seen.hasWholeRound() {", new: "len(seen.numbers) == 0 {",
	},
	{
		name: "a withdrawal does not check the phase", file: "barrier/roundmember.go",
		test: "TestRoundStartingDuringWithdrawalIsEntered",
		old:  "framework.CheckOp(m.b.path, st.phase), framework.DeleteOp(m.node",
		new:  "framework.CheckOp(m.b.path, framework.AnyVersion), framework.DeleteOp(m.node",
	},
	{
		name: "a lost place is given up though a round may have begun with it", file: "barrier/roundmember.go",
		test: "TestMemberReturningToItsRoundHasDiedInside",
		old:  "\tcase m.number-st.base < 0:\n\t\tm.discard(s)\n\t\treturn true, nil\n\t}",
		new:  "\t}",
	},
	{
		name: "who begins a round is in it", file: "barrier/roundwait.go",
		test: "TestMemberStartingAnotherRoundStaysOutside",
		old: "\t\tif begun.isInsideAs(m.node.memberDirectory, m.node.number) {\n\t\t\treturn begun, " +
			"nil\n\t\t}\n\t\treturn barrierState{}, recipe.ErrAgain",
		new: "\t\treturn begun, nil",
	},
	{
		name: "numbers are sorted as integers", file: "barrier/roundwait.go",
		test: "TestTheFirstMembersEnterWhenNumbersWrap",
		old:  "cmp.Compare(x-y, 0)",
		new:  "cmp.Compare(x, y)",
	},
	{
		name: "a guard checks nothing", file: "barrier/round.go", test: "TestAGuardIsCheckedByTheServers",
		old: "primitives.When(framework.CheckOp(r.node, framework.AnyVersion), r.Err)",
		new: "primitives.When(framework.CheckOp(\"/\", framework.AnyVersion), r.Err)",
	},
	{
		name: "a round between two reads is not noticed", file: "barrier/storedbarrier.go",
		test: "TestRoundStartingBetweenTwoReads",
		old:  "case last.Phase-seen.phase > 0:",
		new:  "case last.Phase-seen.phase > 1<<20:",
	},
	{
		name: "who gives up does not look whether it was let in", file: "barrier/roundmember.go",
		test: "TestRoundStartingDuringWithdrawalIsEntered",
		old:  "case err == nil && st.isInsideAs(m.memberDirectory, m.number):",
		new:  "case err == nil && st.isInsideAs(m.memberDirectory, m.number) && false:",
	},
	{
		name: "a lost place that is gone was never inside", file: "barrier/roundmember.go",
		test: "TestPlaceOfLostSessionIsReadFromServers",
		old:  "return st.memberDirectory != m.memberDirectory || m.number-st.base < 0, err",
		new:  "return false, err",
	},
	{
		name: "a lost place of an older numbering was never inside", file: "barrier/roundmember.go",
		test: "TestLostPlaceIsNotOfWaitingMember",
		old:  "return st.memberDirectory != m.memberDirectory || m.number-st.base < 0, err",
		new:  "return m.number-st.base < 0, err",
	},
	{
		name: "a create that was lost is taken for none", file: "barrier/roundmember.go",
		test: "TestCreateLostWithItsSession",
		old:  "\tif m.mayExist {\n\t\tif err := m.findOrphan",
		new:  "\tif m.mayExist && m.node.Path != \"\" {\n\t\tif err := m.findOrphan",
	},
	{
		name: "rounds that passed an unsure place are ignored", file: "barrier/roundmember.go",
		test: "TestRoundStartsWithUnacknowledgedPlace",
		old:  "|| st.roundsBegun() != m.known.roundsBegun()):",
		new:  "|| false):",
	},
	{
		name: "who cannot give up in time leaves its node", file: "barrier/roundmember.go",
		test: "TestWaitEndedWhileDisconnectedHasUnknownOutcome",
		old:  "\t\tdefault:\n\t\t\tm.discard(m.s)\n\t\t\treturn barrierState{}, why",
		new:  "\t\tdefault:\n\t\t\treturn barrierState{}, why",
	},
	{
		name: "a barrier that was made anew is the same", file: "barrier/roundwait.go",
		test: "TestPlaceOfDeletedBarrierIsNotOfItsSuccessor",
		old:  "if seen.czxid != m.node.czxid {",
		new:  "if seen.czxid < 0 {",
	},
	{
		name: "an event from before begins a round", file: "barrier/roundwait.go",
		test: "TestAnEventFromBeforeIsNoBeginning",
		old:  "event.Kind == framework.NodeChanged && !st.staleWatch &&",
		new:  "event.Kind == framework.NodeChanged &&",
	},
	{
		name: "a round takes any members", file: "barrier/roundwait.go", test: "TestTooManyIsReportedAfterUnseenRound",
		old: "\tslices.SortFunc(numbers, func(x, y int32) int { return cmp.Compare(x-y, 0) })\n",
		new: "\t_ = cmp.Compare[int32]\n",
	},
	{
		name: "a round begins without a look at its members", file: "barrier/roundwait.go",
		test: "TestPlaceOfLostSessionIsReadFromServers",
		old:  "ops = append(ops, framework.CheckOp(st.memberPath(n), framework.AnyVersion))",
		new:  "_ = st.memberPath(n)",
	},
	{
		name: "a round begins at any version", file: "barrier/roundwait.go", test: "TestRoundsInAStorm",
		old: "framework.SetOp(m.b.path, st.recordData, st.phase)",
		new: "framework.SetOp(m.b.path, st.recordData, framework.AnyVersion)",
	},
	{
		name: "an unknown beginning is an end", file: "barrier/roundwait.go",
		test: "TestTooManyIsReportedAfterUnseenRound",
		old:  "case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrSuspended):",
		new:  "case errors.Is(err, framework.ErrBadVersion):",
	},
	{
		name: "the end of the session does not end a wait", file: "barrier/roundwait.go",
		test: "TestMemberDyingWhileWaitingFreesItsPlace",
		old:  "recipe.WaitForFirst(ctx, m.exists, recipe.Sources{Watch: w})",
		new:  "recipe.WaitForFirst(ctx, context.Background(), recipe.Sources{Watch: w})",
	},
	{
		name: "leaving ends with its context", file: "barrier/round.go", test: "TestLeaveEndedByContextHasLeft",
		old: "d.b.client.CleanupContext(ctx)", new: "context.WithCancel(ctx)",
	},
	{
		name: "leaving without a connection leaves the node", file: "barrier/round.go",
		test: "TestLeaveWhileCutOffIsFinishedInTheBackground",
		old:  "\t\t\td.s.Primitives().Discard(nil, d.node)\n\t\t\treturn failure",
		new:  "\t\t\treturn failure",
	},
	{
		name: "a left round's context goes on", file: "barrier/round.go", test: "TestMembersEnterAndLeaveTogether",
		old: "\tr.hold.End(ErrLeft)\n",
		new: "",
	},
	{
		name: "a member taken for dead leaves without an error", file: "barrier/round.go",
		test: "TestMemberDyingInsideLetsOthersLeave",
		old:  "\tif err := r.hold.Err(); err != nil {\n\t\treturn false, err\n\t}\n\tr.left",
		new:  "\tr.left",
	},
	{
		name: "the last to leave does not end the round", file: "barrier/round.go",
		test: "TestMembersEnterAndLeaveTogether",
		old:  "case err == nil && rs[1].Stat.NumChildren == 0:",
		new:  "case err == nil && rs[1].Stat.NumChildren < 0:",
	},
	{
		name: "a round of dead members is not ended", file: "barrier/round.go",
		test: "TestMemberDyingInsideLetsOthersLeave",
		old:  "\tcase len(rest) == 0:\n\t\treturn d.b.endRound(ctx, s, st)\n",
		new: "\tcase len(rest) == 0:\n\t\treturn d.b.waitForRoundChange(ctx, s.Context(), s, roundChange{w, " +
			"st.memberPath(0), time.Second})\n",
	},
	{
		name: "over though some are inside", file: "barrier/round.go", test: "TestMembersEnterAndLeaveTogether",
		old: "\tif seen.czxid != d.st.czxid || seen.phase-d.st.phase > 0 {\n\t\treturn nil\n\t}\n",
		new: "\tif seen.czxid != d.st.czxid || seen.phase-d.st.phase >= 0 {\n\t\treturn nil\n\t}\n",
	},
	{
		name: "a guard does not look at the lease", file: "barrier/round.go", test: "TestARoundEndsWithItsNode",
		old: "primitives.When(framework.CheckOp(r.node, framework.AnyVersion), r.Err)",
		new: "framework.CheckOp(r.node, framework.AnyVersion)",
	},
	{
		name: "a lost session ends Leave", file: "barrier/round.go", test: "TestWaitsSurviveTheLossOfTheSession",
		old: "if err := d.waitForRoundEnd(ctx, s); !errors.Is(err, recipe.ErrAgain) {",
		new: "if err := d.waitForRoundEnd(ctx, s); !errors.Is(err, recipe.ErrAgain) {\n\t\t\t\tif errors.Is(err, " +
			"framework.ErrSessionLost) {\n\t\t\t\t\treturn errors.New(\"lost\")\n\t\t\t\t}",
	},
	{
		name: "a lost reply to Leave ends it", file: "barrier/round.go", test: "TestALostReplyAnywhere",
		old: "\t\tcase errors.Is(err, framework.ErrSuspended):\n\t\tdefault:",
		new: "\t\tdefault:",
	},
	{
		name: "a lost place is judged behind no sync", file: "barrier/roundmember.go",
		old: "\t\tif err := s.Sync(ctx, m.b.path); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tinside",
		new: "\t\tinside",
		redundant: "one server that answers in order shows nothing older than it has shown; it needs a server that " +
			"lags behind another",
	},
	{
		name: "a refused withdrawal looks at once", file: "barrier/roundmember.go",
		old: "\tcase errors.Is(err, framework.ErrBadVersion):\n\t\tif err := s.Sync(ctx, m.b.path); err != " +
			"nil {\n\t\t\treturn err\n\t\t}\n\t\treturn recipe.ErrAgain",
		new: "\tcase errors.Is(err, framework.ErrBadVersion):\n\t\treturn recipe.ErrAgain",
		redundant: "one server that answers in order shows nothing older than it has shown; it needs a server that " +
			"lags behind another",
	},
	{
		name: "lost replies looked up behind no sync", file: "barrier/membernode.go",
		old: "\tif err := s.Sync(ctx, in); err != nil {\n\t\treturn found, err\n\t}\n",
		new: "",
		redundant: "one server that answers in order shows nothing older than it has shown; it needs a server that " +
			"lags behind another",
	},
	{
		name: "members are listed behind no sync after a refusal", file: "barrier/roundwait.go",
		old: "\t\tif err := m.s.Sync(ctx, m.b.path); err != nil {\n\t\t\treturn barrierState{}, err\n\t\t}\n",
		new: "",
		redundant: "one server that answers in order shows nothing older than it has shown; it needs a server that " +
			"lags behind another",
	},
	{
		name: "a missing record of the round is not noticed", file: "barrier/roundwait.go",
		test: "TestDeletedRoundRecordIsReported",
		old:  "errors.As(err, &refused) && refused.Index == len(ops)-1 {",
		new:  "errors.As(err, &refused) && refused.Index == len(ops) {",
	},
	{
		name: "a state without the record of the round stays known", file: "barrier/roundwait.go",
		test: "TestDeletedRoundRecordIsReported",
		old:  "\t\t\tm.b.dropCachedState()\n", new: "",
	},
	{
		name: "a change lets everyone in", file: "barrier/roundwait.go",
		old: "!st.staleWatch && st.admitsNumber(m.node.number, m.b.size):",
		new: "!st.staleWatch:",
		redundant: "a member that waits in a list of fewer than all is among the lowest of the next round, unless " +
			"the list came from a server that lags behind",
	},
	{
		name: "an event from before ends a round", file: "barrier/round.go",
		old: "case event.Kind != framework.NodeChanged || seen.staleWatch || seen.phase != d.st.phase:",
		new: "case event.Kind != framework.NodeChanged:",
		redundant: "a session hears of a change before it can read it, so the end of a round comes after the read; " +
			"it needs a server that lags behind",
	},
	{
		name: "a place is vacated on what is known", file: "barrier/roundmember.go",
		old: "st, own, err := m.readStateAndNode(ctx, s, m.b.readStateUncached)",
		new: "st, own, err := m.readStateAndNode(ctx, s, m.b.readState)",
		redundant: "while the member's node is there its round cannot have ended, and of a round that is inside " +
			"only what was read is kept",
	},
	{
		name: "numbers below the base take part", file: "barrier/roundwait.go",
		old: "\tnumbers = slices.DeleteFunc(numbers, func(n int32) bool { return n-st.base < 0 })\n",
		new: "",
		redundant: "a round ends when no node of its members is left, so no number below the base is there while " +
			"members gather",
	},
	{
		name: "what is known may become older", file: "barrier/storedbarrier.go",
		old:       "\tif b.cached.czxid == st.czxid && b.cached.phase-st.phase > 0 {\n\t\treturn\n\t}\n",
		new:       "",
		redundant: "whoever knows less reads more: it costs requests",
	},
	{
		name: "the numbers of a former round are those inside", file: "barrier/storedbarrier.go",
		old:       "\tif last.Phase == seen.phase {\n\t\tseen.numbers",
		new:       "\tif last.Phase <= seen.phase {\n\t\tseen.numbers",
		redundant: "the beginning of a round and its numbers are written by one transaction",
	},

	// Gates.
	{
		name: "a gate raised anew is lowered", file: "barrier/gate.go", test: "TestGateRaisedAgainIsNotLowered",
		old: "case first != st.Czxid:", new: "case first == 0 && st.Czxid == 0:",
	},
	{
		name: "a wait at a gate misses a fall", file: "barrier/gate.go", test: "TestWaitingAtAGateSurvives",
		old: "if st.Czxid != *first {", new: "if st.Czxid == 0 {",
	},
	{
		name: "a gate that a lease holds is raised by others", file: "barrier/gate.go",
		test: "TestAHeldGateFallsWithItsHolder",
		old:  "case err == nil && st.EphemeralOwner != 0:", new: "case err == nil && st.EphemeralOwner == -1:",
	},
	{
		name: "a wait at a gate begins without a sync", file: "barrier/gate.go",
		old: "		if err := s.Sync(ctx, g.path); err != nil { // another client may have raised it on another " +
			"server\n			return err\n		}\n", new: "",
		redundant: "one server that answers in order shows nothing older than it has shown; it needs a server that " +
			"lags behind another",
	},

	// Latches.
	{
		name: "a wait at a latch misses an opening", file: "barrier/latch.go", test: "TestALatchSurvives",
		old: "if err != nil || after.latchCount != *first {", new: "if err != nil || after.czxid != first.czxid {",
	},
	{
		name: "a late reset deletes the next count", file: "barrier/latch.go",
		test: "TestALateResetLeavesTheNextCountAlone",
		old:  "record.encode(), record.version)}", new: "record.encode(), framework.AnyVersion)}",
	},
	{
		name: "a latch is reset twice after a lost reply", file: "barrier/latch.go", test: "TestALatchSurvives",
		old: "case count.latchCount != first:", new: "case count.czxid != first.czxid:",
	},
	{
		name: "a reset does not report a node of another program", file: "barrier/latch.go",
		test: "TestResetReportsPermanentRefusal",
		old:  "if refused.Path == l.by || refused.Path == l.at {", new: "if refused.Path != \"\" {",
	},
	{
		name: "a reset does not report a quota that is used up", file: "barrier/latch.go",
		test: "TestResetReportsPermanentRefusal",
		old:  "case errors.As(err, &refused) && errors.Is(err, framework.ErrNotEmpty):",
		new: "case errors.Is(err, framework.ErrQuotaExceeded):\n\t\treturn recipe.ErrAgain\n\tcase errors.As(err, " +
			"&refused) && errors.Is(err, framework.ErrNotEmpty):",
	},
	{
		name: "a count too many ends a reset", file: "barrier/latch.go", test: "TestResetBesideCountTooMany",
		old: "if refused.Path == l.by || refused.Path == l.at {", new: "if refused.Path == \"\" {",
	},
	{
		name: "a wait takes a latch that was created again for an opened one", file: "barrier/latch.go",
		test: "TestALatchThatIsCreatedAgainHasNotOpened",
		old:  "	if before.czxid != first.czxid {\n",
		new: "	if first.czxid != 0 && before.czxid != first.czxid {\n		return true, nil\n	}\n	if " +
			"before.czxid != first.czxid {\n",
	},
	{
		name: "a reset removes the fields of later releases", file: "barrier/latch.go",
		test: "TestUnknownFieldsOfALatchSurviveReset",
		old:  "record.encode(), record.version)}",
		new:  "nodeRecord{Kind: latchKind, Size: l.size}.encode(), record.version)}",
	},
	{
		name: "a latch that has not opened is reset", file: "barrier/latch.go", test: "TestALatchOpensWithItsLastCount",
		old: "if _, err := s.Exists(ctx, l.lastCountNode()); errors.Is(err, framework.ErrNoNode) {",
		new: "if _, err := s.Exists(ctx, l.lastCountNode()); errors.Is(err, framework.ErrNoAuth) {",
	},
	{
		name: "a count too many stays", file: "barrier/latch.go", test: "TestALatchOpensWithItsLastCount",
		old: "rs[2].Path > l.lastCountNode():", new: "rs[2].Path > \"~\":",
	},
	{
		name: "a count whose reply was lost is repeated in the next count", file: "barrier/latch.go",
		test: "TestACountIsNotRepeatedInTheNextCount",
		old:  "err == nil && now.latchCount != in {", new: "err == nil && now.czxid != in.czxid {",
	},
	{
		name: "a count whose reply was lost is repeated in a latch that was made again", file: "barrier/latch.go",
		test: "TestACountIsNotRepeatedInARemadeLatch",
		old:  "err == nil && now.latchCount != in {", new: "err == nil && now.version != in.version {",
	},
	{
		name: "Leave ends with the time of its cleanup", file: "barrier/round.go",
		test: "TestLeaveEndsTheRoundAfterAnOutage",
		old:  "_ = d.b.endRound(ctx, d.s, d.st)\n",
		new: "if err := d.b.endRound(ctx, d.s, d.st); errors.Is(err, context.DeadlineExceeded) " +
			"{\n				return err\n			}\n",
	},
	{
		name: "a caller's second count is taken for one without an answer", file: "barrier/latch.go",
		test: "TestASecondCountBesideAReset",
		old:  "\t\t\t\tcounted = true\n", new: "\t\t\t\tcounted, sent = true, count\n",
	},
	{
		name: "a count too many of an earlier call becomes one of the next count", file: "barrier/latch.go",
		test: "TestAnEarlierCountTooManyIsReportedAfterAReset",
		old:  "\t\tsent = count // the call may", new: "\t\t_ = sent // the call may",
	},
	{
		name: "a deletion of the latch ends a count", file: "barrier/latch.go", test: "TestACountBesideADeletion",
		old: ", isLatchGone(err):", new: ":",
	},
	{
		name: "a count whose reply was lost is not judged", file: "barrier/latch.go",
		test: "TestTooManyCountsAreReportedAfterLostReply",
		old:  "extra, err = l.checkEarlierCount(ctx, s, id)", new: "err = nil",
	},
	{
		name: "a count too many is unknown after a reset", file: "barrier/latch.go",
		test: "TestACountTooManyIsReportedAfterAReset",
		old:  "cmp.Or(tooMany, fmt.Errorf", new: "cmp.Or(nil, fmt.Errorf",
	},
	{
		name: "a list without nodes reads them", file: "barrier/inspect.go",
		test: "TestListEndsWithTheErrorOfItsSearch",
		old:  "\tif len(paths) == 0 {\n\t\treturn true\n\t}\n", new: "",
	},
}
