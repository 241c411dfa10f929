package mutants

// barrierMutants are the safeguards of package barrier.
var barrierMutants = []mutant{
	{
		promise: "A round of a double barrier begins for all or for none",
		name:    "a withdrawal does not check the phase", file: "barrier/roundmember.go",
		test: "TestRoundStartingDuringWithdrawalIsEntered",
		old:  "framework.CheckOp(m.b.path, state.phase), framework.DeleteOp(m.node",
		new:  "framework.CheckOp(m.b.path, framework.AnyVersion), framework.DeleteOp(m.node",
	},
	{
		promise: "A round of a double barrier begins for all or for none",
		name:    "a lost place is given up though a round may have begun with it", file: "barrier/roundmember.go",
		test: "TestMemberReturningToItsRoundHasDiedInside",
		old:  "\tcase m.number-state.base < 0:\n\t\tm.discard(s)\n\t\treturn true, nil\n\t}",
		new:  "\t}",
	},
	{
		promise: "A round of a double barrier begins for all or for none",
		name:    "rounds that passed an unsure place are ignored", file: "barrier/roundmember.go",
		test: "TestRoundStartsWithUnacknowledgedPlace",
		old:  "|| state.roundsBegun() != m.known.roundsBegun()):",
		new:  "|| false):",
	},
	{
		promise: "A round of a double barrier begins for all or for none",
		name:    "a round begins without a look at its members", file: "barrier/roundwait.go",
		test: "TestPlaceOfLostSessionIsReadFromServers",
		old:  "ops = append(ops, framework.CheckOp(state.memberPath(n), framework.AnyVersion))",
		new:  "_ = state.memberPath(n)",
	},
	{
		promise: "A round of a double barrier begins for all or for none",
		name:    "a round begins at any version", file: "barrier/roundwait.go", test: "TestRoundsInAStorm",
		old: "framework.SetOp(m.b.path, state.recordData, state.phase)",
		new: "framework.SetOp(m.b.path, state.recordData, framework.AnyVersion)",
	},
	{
		promise: "A round of a double barrier begins for all or for none",
		name:    "the end of the session does not end a wait", file: "barrier/roundwait.go",
		test: "TestMemberDyingWhileWaitingFreesItsPlace",
		old:  "recipe.WaitForFirst(ctx, m.exists, recipe.Sources{Watch: w})",
		new:  "recipe.WaitForFirst(ctx, context.Background(), recipe.Sources{Watch: w})",
	},
	{
		promise: "A round of a double barrier begins for all or for none",
		name:    "a round of dead members is not ended", file: "barrier/round.go",
		test: "TestMemberDyingInsideLetsOthersLeave",
		old:  "\tcase len(rest) == 0:\n\t\treturn d.b.endRound(ctx, s, state)\n",
		new: "\tcase len(rest) == 0:\n\t\treturn d.b.waitForRoundChange(ctx, s.Context(), s, roundChange{w, " +
			"state.memberPath(0), time.Second})\n",
	},
	{
		promise: "A round of a double barrier begins for all or for none",
		name:    "a lost reply to Leave ends it", file: "barrier/round.go", test: "TestALostReplyAnywhere",
		old: "\t\tcase errors.Is(err, framework.ErrSuspended):\n\t\tdefault:",
		new: "\t\tdefault:",
	},
	{
		promise: "When an operator deletes a double barrier and others make it again",
		name:    "a barrier that is made again has the same directory", file: "barrier/membername.go",
		test: "TestRoundOfARemadeBarrierEnds|TestLeavingARemadeBarrier",
		old:  "return directoryPrefix + uuid.NewString()", new: "return directoryPrefix + uuid.Nil.String()",
	},
	{
		promise: "When an operator deletes a double barrier and others make it again",
		name:    "the end of a round does not check whose round it is", file: "barrier/roundend.go",
		test: "TestEndOfARoundOfARemadeBarrier",
		old:  ",\n\t\tframework.CheckOp(state.in, framework.AnyVersion))", new: ")",
	},
	{
		promise: "When an operator deletes a double barrier and others make it again",
		name:    "a barrier that was made anew is the same", file: "barrier/roundwait.go",
		test: "TestPlaceOfDeletedBarrierIsNotOfItsSuccessor",
		old:  "if seen.czxid != m.node.czxid {",
		new:  "if seen.czxid < 0 {",
	},
	{
		promise: "One member too many gets `ErrTooMany`",
		name:    "a round takes any members",
		file:    "barrier/roundwait.go", test: "TestTooManyIsReportedAfterUnseenRound",
		old: "\tslices.SortFunc(numbers, func(x, y int32) int { return cmp.Compare(x-y, 0) })\n",
		new: "\t_ = cmp.Compare[int32]\n",
	},
	{
		promise: "A call counts a latch down at most once",
		name:    "a wait at a latch misses an opening", file: "barrier/latch.go", test: "TestALatchSurvives",
		old: "if err != nil || after.latchCount != *first {", new: "if err != nil || after.czxid != first.czxid {",
	},
	{
		promise: "A call counts a latch down at most once",
		name:    "a latch is reset twice after a lost reply", file: "barrier/latch.go", test: "TestALatchSurvives",
		old: "case count.latchCount != first:", new: "case count.czxid != first.czxid:",
	},
	{
		promise: "A call counts a latch down at most once",
		name:    "a count whose reply was lost is repeated in the next count", file: "barrier/latch.go",
		test: "TestACountIsNotRepeatedInTheNextCount",
		old:  "err == nil && now.latchCount != in {", new: "err == nil && now.czxid != in.czxid {",
	},
	{
		promise: "A call counts a latch down at most once",
		name:    "a count whose reply was lost is repeated in a latch that was made again", file: "barrier/latch.go",
		test: "TestACountIsNotRepeatedInARemadeLatch",
		old:  "err == nil && now.latchCount != in {", new: "err == nil && now.version != in.version {",
	},
	{
		promise: "A waiter at a gate or a latch misses no opening",
		name:    "a wait at a gate misses a fall", file: "barrier/gate.go", test: "TestWaitingAtAGateSurvives",
		old: "if stat.Czxid != *first {", new: "if stat.Czxid == 0 {",
	},
}
