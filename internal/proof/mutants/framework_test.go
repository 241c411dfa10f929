package mutants

func init() { lists["framework"] = frameworkMutants }

// frameworkMutants are the safeguards of package framework.
var frameworkMutants = []mutant{
	// What a session timeout survives.
	{
		name: "pauses between attempts take no heed of the lease", file: "framework/interruption.go",
		test: "TestAHoldSurvivesTheLongestInterruption",
		old:  "return min(pause, max(least, lease/pauseFraction))", new: "return pause",
	},
	{
		name: "a silent server is waited for as long as ever", file: "framework/session.go",
		test: "TestSilentServerEndsNoHold",
		old:  "min(timeout/3, 3*time.Second), timeout/8)", new: "timeout/3)",
	},
	{
		name: "a silent server is waited for by the timeout that was asked for", file: "framework/session.go",
		test: "TestASilentServerIsLeftAfterAPartOfTheGrantedTimeout",
		old:  "	timeout := s.Timeout()\n", new: "	timeout := time.Duration(0)\n",
	},
	{
		name: "the warning of an outage does not tell how long holds stand", file: "framework/servers.go",
		test: "TestOutageIsLoggedOnce",
		old:  "\tif lease > 0 {\n\t\tattributes", new: "\tif lease < 0 {\n\t\tattributes",
	},
	{
		name: "a log's handler runs on the goroutine that connects", file: "framework/log.go",
		test: "TestALogHandlerThatBlocksStopsNothing",
		old:  "	return slog.New(backgroundHandler{b, to.Handler()})", new: "	return to",
	},
	{
		name: "any number of records waits for a log's handler", file: "framework/log.go",
		test: "TestRecordsThatWaitForAHandlerAreBounded",
		old:  "	if len(b.waiting) >= maxWaitingRecords {", new: "	if false {",
	},
	{
		name: "the last cause is forgotten", file: "framework/client.go", test: "TestOutageIsLoggedOnce",
		old: "\t\tc.cause = change.Cause\n", new: "\t\t_ = c.cause\n",
	},
	{
		name: "proofs of life cost an allocation without a provider", file: "framework/telemetry.go",
		test: "TestNothingIsAllocatedForMetricsWithoutAProvider",
		old:  "if !t.heartbeats.Enabled(context.Background()) {", new: "if false {",
	},
	{
		name: "Close does not tell that no server has closed the session", file: "framework/client.go",
		test: "TestCloseTellsThatTheSessionIsLeft",
		old:  "	return closeError(c.left)\n", new: "	return nil\n",
	},
	// ACLs.
	{
		name: "the text of an ACL has the hash of a password", file: "framework/acl.go", test: "TestAnACLIsRead",
		old: `id, _, _ = strings.Cut(id, ":")`, new: `id, _, _ = strings.Cut(id, "|")`,
	},
	// The lease rule.
	{
		name: "the lease's margin is half as long", file: "framework/lease.go", test: "TestMargin",
		old: "return 50*time.Millisecond + timeout/50", new: "return 25*time.Millisecond + timeout/100",
	},
	{
		name: "the lease counts from this heartbeat, not the one before", file: "framework/lease.go",
		test: "TestLeaseCountsFromTheHeartbeatBefore",
		old:  "\t\t\tl.extendUntil(from)\n", new: "\t\t\tl.extendUntil(sentAt)\n",
	},
	{
		name: "behind an observer master the former heartbeat counts", file: "framework/lease.go",
		test: "TestLeaseBehindObserverMasterCountsFromEarlierHeartbeat",
		old:  "from := former.sentAt[l.furtherBack]; from", new: "from := former.sentAt[0]; from",
	},
	{
		name: "sessions do not know of observer masters", file: "framework/session.go",
		test: "TestALeaseIsShorterBehindObserverMasters",
		old:  "\ts.lease.furtherBack = setup.cfg.furtherBack()\n", new: "",
	},
	{
		name: "behind an observer master a server is given up no sooner", file: "framework/lease.go",
		test: "TestALostServerEndsNoHoldBehindAnObserverMaster",
		old:  "return heartbeatInterval(timeout) / time.Duration(1+furtherBack)",
		new:  "return heartbeatInterval(timeout)",
	},
	{
		name: "heartbeats of a former connection count", file: "framework/lease.go",
		test: "TestLeaseForgetsHeartbeatsOfAFormerConnection",
		old:  "	l.connectSentAt, l.awaitsWrite = sentAt, true\n	l.forgetHeartbeats()\n",
		new:  "	l.connectSentAt, l.awaitsWrite = sentAt, true\n",
	},
	{
		name: "the newest session timeout counts, not the smallest", file: "framework/lease.go",
		test: "TestLeaseKeepsTheSmallestTimeout",
		old:  "if l.timeout == 0 || timeout < l.timeout {", new: "if true {",
	},
	{
		name: "a write that another connection acknowledged counts", file: "framework/heartbeat.go",
		old: "\tif err == nil && !s.isCurrentConnection(generation) {\n\t\terr = errConnectionGone\n\t}\n\treturn " +
			"sentAt, err", new: "\treturn sentAt, err",
		redundant: "a request passes only on a connection that this goroutine has admitted, which is the one of " +
			"this heartbeat",
	},
	{
		name: "a sync that another connection acknowledged counts", file: "framework/heartbeat.go",
		old: "\tif err == nil && !s.isCurrentConnection(generation) {\n\t\terr = errConnectionGone\n\t}\n\tif err " +
			"== nil {\n\t\ts.unproven", new: "\tif err == nil {\n\t\ts.unproven",
		redundant: "a request passes only on a connection that this goroutine has admitted, which is the one of " +
			"this heartbeat",
	},
	{
		name: "a late proof ends a connection without a stake", file: "framework/sessionloop.go",
		test: "TestALateProofEndsNoConnectionWithoutStake",
		old:  "if err != nil && !(errors.Is(err, errOverdue) && s.sleepUnproven()) {", new: "if err != nil {",
	},
	{
		name: "a late proof ends no connection", file: "framework/session.go",
		test: "TestALateProofEndsNoConnectionWithoutStake",
		old:  "if s.hasStake() || s.writesAnswered", new: "if s.writesAnswered",
	},
	{
		name: "a join is a stake", file: "framework/dormancy.go", test: "TestALateProofEndsNoConnectionWithoutStake",
		old: "return d.holdCount+d.reasons > 0", new: "return d.isNeeded()",
	},
	{
		name: "a silent server counts as a slow one", file: "framework/session.go",
		test: "TestASilentServerIsLeftAtOnce",
		old:  " || s.writesAnswered.Load() == s.unproven.writes", new: "",
	},
	{
		name: "a slow server is kept for ever", file: "framework/session.go",
		test: "TestASlowServerIsLeftAfterATimeout",
		old:  " || now-s.unproven.since >= s.lease.timeout", new: " || now < 0",
	},
	{
		name: "a session whose proof is late keeps the rest of its lease", file: "framework/session.go",
		test: "TestAHoldOnASlowServerHasAWholeLease",
		old:  "\ts.lease.endLease()\n\treturn true\n", new: "\treturn true\n",
	},
	{
		name: "a lapsed lease is revived", file: "framework/session.go", test: "TestALapsedLeaseIsNotRevived",
		old: "\tif before != 0 && now >= before {\n", new: "	if false {\n",
	},
	// Sessions that sleep.
	{
		name: "a hold is granted while the session is dormant", file: "framework/session.go",
		test: "TestASessionIsAwakeWhileItHolds",
		old:  "if s.lease.until == 0 || s.setup.clock.Now() >= s.lease.until || ", new: "if ",
	},
	{
		name: "a heartbeat begins a lease", file: "framework/lease.go", test: "TestHeartbeatsDoNotBeginALease",
		old: "	if l.until != 0 {\n		l.until = max(", new: "	{\n		l.until = max(",
	},
	{
		name: "the former heartbeat counts without T/4 between it and the next", file: "framework/lease.go",
		test: "TestAYoungLeaseIsExtendedByTheNextPings",
		old:  "		if former.answeredAt+heartbeatInterval(l.timeout) > l.due {\n			continue\n		}\n",
		new:  "",
	},
	{
		name: "heartbeats of sessions that connect together stay together", file: "framework/lease.go",
		test: "TestHeartbeatsAfterACommonEventAreSpread",
		old:  "	case l.shifted == 0 && wait == interval:", new: "	case l.shifted < 0:",
	},
	{
		name: "a clock that goes back a little breaks the series of heartbeats", file: "framework/lease.go",
		test: "TestAHeartbeatCountsThoughTheClockGoesBack",
		old:  "		now = max(now, l.latest[0].answeredAt)\n", new: "",
	},
	{
		name: "a heartbeat is left out while the session moves to its phase", file: "framework/lease.go",
		test: "TestTheMoveToAPhaseShortensNoLease",
		old:  "		wait = max(0, l.latest[1].answeredAt+interval-now)\n", new: "",
	},
	{
		name: "behind an observer master the move to a phase ends too soon", file: "framework/lease.go",
		test: "TestTheMoveToAPhaseShortensNoLease",
		old:  "l.shifted <= 2+2*l.furtherBack:", new: "l.shifted <= 2:",
	},
	{
		name: "a heartbeat waits for the answer to the one that moves the session to its phase",
		file: "framework/lease.go", test: "TestTheMoveToAPhaseShortensNoLease",
		old: "float64(max(0, interval-2*took))", new: "float64(max(0, interval-0*took))",
	},
	{
		name: "heartbeats of the sleep count", file: "framework/lease.go", test: "TestHeartbeatsDoNotBeginALease",
		old: "	if l.until == 0 {\n		return\n	}\n	h := heartbeat{", new: "	h := heartbeat{",
	},
	{
		name: "a lease begins that has lapsed", file: "framework/lease.go", test: "TestLapsedLeaseDoesNotStart",
		old: "l.until == 0 && now < until {", new: "l.until == 0 {",
	},
	{
		name: "a session wakes without a second write", file: "framework/lease.go",
		test: "TestWakingTakesTwoWritesOfOneConnection",
		old:  "heartbeatInterval(l.timeout), writes: 2})", new: "heartbeatInterval(l.timeout), writes: 1})",
	},
	{
		name: "a lease begins that nothing extends in time", file: "framework/lease.go",
		test: "TestLeaseStartsFromPacketOfRightAge",
		old:  "< min(max(l.timeout/12, answers), l.timeout/4) || found", new: "< min(-l.timeout, answers) || found",
	},
	{
		name: "a connect request counts before a younger pair", file: "framework/lease.go",
		test: "TestLeaseStartsFromPacketOfRightAge",
		old:  "	return append(packets, wakingPacket{sentAt: l.connectSentAt, writes: 1})",
		new:  "	return append([]wakingPacket{{sentAt: l.connectSentAt, writes: 1}}, packets...)",
	},
	{
		name: "a session wakes by pings that are too young", file: "framework/lease.go",
		test: "TestLeaseStartsFromPacketOfRightAge",
		old:  "from: p.AnsweredAt + heartbeatInterval(l.timeout), writes: 2})", new: "from: p.AnsweredAt, writes: 2})",
	},
	{
		name: "a heartbeat counts pings that are too young", file: "framework/lease.go",
		test: "TestAYoungLeaseIsExtendedByTheNextPings",
		old:  "if l.furtherBack == 0 && p.AnsweredAt+heartbeatInterval(l.timeout) <= sentAt {",
		new:  "if l.furtherBack == 0 {",
	},
	{
		name: "a short hold is watched", file: "framework/hold.go", test: "TestAShortHoldAsksForNoWatch",
		old: "len(nodes) < n && node.due <= now && node.after < hs.heartbeats {", new: "len(nodes) < n {",
	},
	{
		name: "the end of a held node's watch is not noticed", file: "framework/hold.go",
		test: "TestADeletionByAnOperatorIsNoticedAtOnce",
		old:  "		go n.endHold(ErrNoNode)\n", new: "		_ = n.endHold\n",
	},
	{
		name: "a hold that has ended with its session ends by its node", file: "internal/lifetime/lifetime.go",
		pkg: "./framework", test: "TestAHoldOfALostSessionEndsWithIt",
		old: "	if l.Err() == nil && cause == nil {", new: "	if cause == nil && l.Err() == nil {",
	},
	{
		name: "a refused heartbeat has failed", file: "framework/heartbeat.go",
		test: "TestARefusedHeartbeatExtendsTheLease",
		old:  "	if err := errorUnlessOrdered(rs, err); err != nil {\n", new: "	if err != nil {\n",
	},
	{
		name: "the refusal of an expired session counts", file: "framework/requests.go",
		test: "TestARefusalOfAnEndedSessionIsNoProof",
		old:  "if indexOfRefused(rs) >= 0 && !errors.Is(err, ErrSuspended) {", new: "if indexOfRefused(rs) >= 0 {",
	},
	{
		name: "what is behind a refused check stays unknown", file: "framework/heartbeat.go",
		test: "TestDeletedYoungHoldsEndNoOther",
		old:  "		s.holds.watchSoon(held[i+1:])\n", new: "",
	},
	{
		name: "a refused check does not say that the node is gone", file: "framework/heartbeat.go",
		test: "TestAYoungHoldIsChecked",
		old:  "	held[i].endHold(rs[i].Err)\n", new: "	held[i].hold.End(rs[i].Err)\n",
	},
	{
		name: "a held node whose watch has ended counts as watched", file: "framework/hold.go",
		test: "TestADeletionIsNoticedWithoutItsWatch",
		old:  "	hs.watched.removeNode(n)\n	hs.unwatched.addNode(n)\n", new: "",
	},
	{
		name: "creates of one session for one node do not wait for each other", file: "framework/operations.go",
		test: "TestOneOfTwoCreatesOfASessionSucceeds",
		old:  "	if mode == Ephemeral {\n		unlock", new: "	if mode == Container {\n		unlock",
	},
	{
		name: "a create is settled by its session's node of other data", file: "framework/settle.go",
		test: "TestACreateIsSettledByItsData",
		old:  "	case r.stat.Version == 0 && !bytes.Equal(r.data, data):\n",
		new:  "	case mode != Ephemeral && r.stat.Version == 0 && !bytes.Equal(r.data, data):\n",
	},
	{
		name: "a failed question for the owned nodes counts as answered", file: "framework/owned.go",
		test: "TestABoundIsNotEnforcedByAFailedQuestion",
		old:  "o.lookupDone, o.everLookedUp = nil, err == nil", new: "o.lookupDone = nil",
	},
	{
		name: "a hold takes any node of its name for its own", file: "framework/hold.go",
		test: "TestAHoldEndsThoughItsNodeIsCreatedAgain",
		old:  " || o.err == nil && o.v.stat.Czxid != n.zxid {", new: " {",
	},
	{
		name: "one batch of watches is asked for after each heartbeat", file: "framework/hold.go",
		test: "TestADeletionByAnOperatorIsNoticedAtOnce",
		old:  "				go s.watchNextNodes(generation)\n",
		new:  "				s.holds.endArming(generation)\n",
	},
	{
		name: "watches of held nodes wait for a heartbeat after a reconnect", file: "framework/hold.go",
		test: "TestADeletionByAnOperatorIsNoticedAtOnce",
		old:  "	if ev.Kind != Reconnected {\n		n.after = hs.heartbeats\n	}\n",
		new:  "	n.after = hs.heartbeats + 3\n",
	},
	{
		name: "the watch of a held node reads its data", file: "framework/hold.go",
		test: "TestWatchesOfHeldNodesReadNoData",
		old:  "watchKey{watchExists, n.full}", new: "watchKey{watchData, n.full}",
	},
	{
		name: "a heartbeat checks no more than one node", file: "framework/hold.go",
		test: "TestHeartbeatsCheckUnwatchedNodes",
		old:  "nodes := hs.unwatched.nextNodes(n)", new: "nodes := hs.unwatched.nextNodes(1)",
	},
	{
		name: "a session falls asleep with a hold", file: "framework/session.go",
		test: "TestASessionIsAwakeWhileItHolds",
		old:  "	if s.isNeeded() {\n		return false\n	}\n	if now-s.lastNeeded",
		new:  "	if now-s.lastNeeded",
	},
	{
		name: "a session with holds outlives its lease", file: "framework/session.go",
		test: "TestSessionEndsBeforeServerExpiresIt",
		old:  "if lapsed && s.holdCount == 0 {", new: "if lapsed {",
	},
	{
		name: "a session never falls asleep", file: "framework/session.go", test: "TestASessionIsAwakeWhileItHolds",
		old: "now-s.lastNeeded >= s.lease.timeout {", new: "now < s.lastNeeded {",
	},
	{
		name: "no alarm is set for the lease's end", file: "framework/session.go",
		test: "TestSessionWithoutConnectionEndsWithItsLease",
		old:  "		s.setAlarm()\n		s.setup.watchdog.leaseExtended(s.epoch, until)\n",
		new:  "		s.setup.watchdog.leaseExtended(s.epoch, until)\n",
	},
	{
		name: "an alarm that rings early is not set again", file: "framework/session.go",
		old: "	s.checkLease()\n	s.setAlarm()\n", new: "	s.checkLease()\n",
		redundant: "alarms ring early only if a process is preempted between two readings of a clock",
	},
	{
		name: "a lease stays although a server grants a smaller timeout", file: "framework/lease.go",
		test: "TestASmallerTimeoutShortensALease|TestALeaseEndsEarlierWhenAServerGrantsLess",
		old:  "			l.until = min(l.until, l.endFrom(sentAt))\n", new: "",
	},
	{
		name: "the alarm of a shortened lease is not set", file: "framework/sessionloop.go",
		old: "	if until < before {\n		s.setAlarm()\n", new: "	if until < before {\n",
		redundant: "in a test the loop that connects again reads the clock in time",
	},
	{
		name: "a lease that begins on a slow link ends before the next answers", file: "framework/lease.go",
		test: "TestALeaseThatBeginsOnASlowLinkLasts",
		old:  "max(l.timeout/12, answers)", new: "max(l.timeout/12, 0*answers)",
	},
	{
		name: "a look-up goes on with servers that were replaced", file: "framework/servers.go",
		test: "TestServersThatAreReplacedDuringALookUpAreNotTried",
		old:  "		if s.replacements == replacements {", new: "		if s.replacements >= replacements {",
	},
	{
		name: "a release hides the end of the parent", file: "internal/lifetime/lifetime.go",
		test: "TestAReleaseDoesNotHideTheEndOfTheParent",
		old:  "	if l.Err() == nil && cause == nil {", new: "	if cause == nil && l.Err() == nil {",
	},
	{
		name: "a lifetime that ends while it is joined is kept by its parts", file: "internal/lifetime/lifetime.go",
		test: "TestALifetimeThatEndsWhileItIsJoinedIsForgotten",
		old:  "	if ended {\n", new: "	if ended && false {\n",
	},
	{
		name: "a context that is asked for late takes the cause of its parent", file: "internal/lifetime/lifetime.go",
		test: "TestAContextAskedForLateTellsItsLifetimesEnd",
		old:  "	if l.cause != nil { // the parent may have",
		new:  "	if l.cause != nil && l.within.BareContext().Err() == nil { // the parent may have",
	},
	{
		name: "a transaction's answer may lack results", file: "framework/requests.go",
		test: "TestAnAnswerThatLacksResultsIsNoSuccess",
		old:  "if len(rs) != operations {", new: "if false {",
	},
	{
		name: "a context does not know that its lifetime ends now", file: "internal/lifetime/lifetime.go",
		test: "TestContextOfALifetimeThatEndsNow",
		old:  "	if err == nil && ended != nil {", new: "	if err == nil && ended != nil && false {",
	},
	{
		name: "Session.Err does not read the clock", file: "framework/session.go",
		old: "\ts.checkLease()\n\treturn context.Cause(s.ctx)", new: "	return context.Cause(s.ctx)",
		redundant: "context.Cause asks the session's context for its error, which reads the clock",
	},
	{
		name: "the session's context does not read the clock", file: "framework/session.go",
		test: "TestErrReadsTheClock",
		old:  "\tc.s.checkLease()\n\treturn c.Context.Err()", new: "	return c.Context.Err()",
	},
	{
		name: "a heartbeat has no deadline", file: "framework/heartbeat.go", test: "TestOverdueHeartbeatChangesServer",
		old: "context.WithTimeoutCause(s.ctx, heartbeatTimeout(s.Timeout(), s.setup.cfg.furtherBack()), errOverdue)",
		new: "context.WithTimeoutCause(s.ctx, 100*heartbeatInterval(s.Timeout()), errOverdue)",
	},
	{
		name: "an overdue connection is not cut", file: "framework/sessionloop.go",
		test: "TestOverdueHeartbeatChangesServer",
		old:  "	s.transport.mon.Cut(generation)\n", new: "",
	},

	{
		name: "a throttled heartbeat gives its connection up", file: "framework/heartbeat.go",
		test: "TestThrottledHeartbeatKeepsConnection",
		old:  "		if !errors.Is(err, ErrOverloaded) {\n			return err",
		new:  "		if err == nil || s.ctx.Err() == nil {\n			return err",
	},
	{
		name: "a throttled heartbeat is an acknowledged one", file: "framework/heartbeat.go",
		test: "TestThrottledHeartbeatDoesNotExtendLease",
		old:  "		if !errors.Is(err, ErrOverloaded) {\n			return err",
		new: "		if errors.Is(err, ErrOverloaded) {\n			return nil\n		}\n		if " +
			"!errors.Is(err, ErrOverloaded) {\n			return err",
	},
	{
		name: "a throttled heartbeat is repeated without a pause", file: "framework/heartbeat.go",
		test: "TestThrottledHeartbeatDoesNotExtendLease",
		old:  "if ended := s.transport.pauseBeforeRetry(ctx, back); ended != nil {",
		new:  "if ended := ctx.Err(); ended != nil && back != nil {",
	},

	// Holds.
	{
		name: "the hold of a deleted node goes on", file: "framework/heartbeat.go", test: "TestAYoungHoldIsChecked",
		old: "	held[i].endHold(rs[i].Err)\n", new: "",
	},
	{
		name: "an ended session gives a hold", file: "framework/primitives.go", test: "TestAnEndedSessionGivesNoHold",
		old: "	if err := p.s.beginHolding(ctx); err != nil {\n		return nil, err\n	}\n	h :=",
		new: "	h :=",
	},

	// Protected creates and deletions.
	{
		name: "the list of a look-up is thrown away", file: "framework/protected.go",
		test: "TestALookUpAfterALostReplyIsTheList",
		old:  "if c.List && create.lookedUp != nil {",
		new:  "if c.List && create.lookedUp != nil && false {",
	},
	{
		name: "a look-up without a sync", file: "framework/protected.go",
		old: "	if err := p.s.Sync(p.s.ctx, p.dir); err != nil {\n		return nil, err\n	}\n	if p.unnumbered", new: "	if p.unnumbered",
		test: "TestNoOrphanWhenRepliesAreLost",
	},
	{
		name: "an answer of another session is believed", file: "framework/protected.go",
		old: "	case r.SessionID != p.s.ID():\n		return nil, ErrSuspended // concludeTry looks up the owner " +
			"of the nodes\n", new: "",
		redundant: "a monitor carries one session only: TestNoSecondSession of internal/link",
	},
	{
		name: "the owner of a node of our name is not checked", file: "framework/protected.go",
		test: "TestAnEphemeralNodeOfAnotherSessionIsNotOurs",
		old:  "		case st.EphemeralOwner != p.s.ID() && p.unnumbered:\n			return nil, ErrNodeExists\n",
		new:  "		case p.unnumbered:\n",
	},
	{
		name: "the owner of a node of our UUID is not checked", file: "framework/protected.go",
		test: "TestProtectedNodeCreatedByAnotherSessionIsNotOwned",
		old:  "		case st.EphemeralOwner != p.s.ID():\n", new: "		case false:\n",
	},
	{
		name: "a caller that leaves does not undo what is settled", file: "framework/protected.go",
		test: "TestACreateGivenUpAsItSettlesIsUndone",
		old:  "\tif p.settled {\n\t\tp.deleteCreated()\n\t}\n\treturn cause", new: "	return cause",
	},
	{
		name: "what settles for a caller that has left is not undone", file: "framework/protected.go",
		test: "TestNoOrphanWhenTheContextEnds",
		old:  "\tp.done <- err\n\tif p.abandoned {\n\t\tp.deleteCreated()\n\t}", new: "	p.done <- err",
	},
	{
		name: "DiscardOwn deletes a node of anyone", file: "framework/deletions.go",
		test: "TestDiscardOwnSparesANodeOfAnotherSession|TestDiscardKeepsNodeCreatedByAnotherSession",
		old:  "o.err == nil && o.v.stat.Czxid == d.own.Zxid", new: "o.err == nil && o.v.stat.Czxid != 0",
	},
	{
		name: "a server that says that the session has expired counts as failed", file: "framework/sessionloop.go",
		test: "TestConnectionComesBackSoonAfterAnOutage",
		old:  "			s.setup.servers.markAnswered()\n", new: "",
	},
	{
		name: "the pauses between attempts to connect last longer than a session", file: "framework/servers.go",
		test: "TestConnectionComesBackSoonAfterAnOutage",
		old:  "min(cfg.RetryMax, cfg.SessionTimeout/pauseFraction)", new: "cfg.RetryMax",
	},
	{
		name: "a refused deletion has a transaction", file: "framework/deletions.go",
		test: "TestRefusedDeletionHasNoZxid",
		old:  "	switch {\n	case err == nil:\n		d.zxid,",
		new:  "	d.zxid = answer.zxid\n	switch {\n	case err == nil:\n		d.zxid,",
	},
	{
		name: "an own node is not looked at again on the next connection", file: "framework/deletions.go",
		test: "TestDiscardKeepsNodeCreatedByAnotherSession",
		old:  "		if d.own.Path != \"\" {\n			calls = append",
		new:  "		if d.own.Path != \"\" && !d.isOwn {\n			calls = append",
	},
	{
		name: "an own node is looked at though its sync was refused", file: "framework/deletions.go",
		old: "		case unsynced != nil:\n", new: "		case unsynced != nil && false:\n",
		redundant: "the in-memory server has one copy of the tree; on an ensemble the next server may show a node " +
			"that was deleted and made anew by another session",
	},
	{
		name: "own nodes are not looked for on the next connection", file: "framework/deletions.go",
		test: "TestAQueuedDeletionComesFirst",
		old:  "\t\t\tcalls = append(calls, ds.ownershipRequest(d)...)\n\t\t\tcontinue\n", new: "			continue\n",
	},
	{
		name: "a former try decides", file: "framework/deletions.go", old: "return waits && d.try == try",
		new: "return waits",
		redundant: "an answer of a former connection that is read late is that of a deletion which has happened or " +
			"was refused, and the present try finds the same; the number keeps indexes and paths in step",
	},
	{
		name: "one refused deletion keeps the others", file: "framework/deletions.go",
		test: "TestARefusedDeletionKeepsNoOthers",
		old:  "case culprit >= 0 && culprit < len(d.paths) && len(paths) > 1:",
		new:  "case culprit >= 0 && culprit < len(d.paths) && len(paths) > 100:",
	},
	{
		name: "what was refused is forgotten", file: "framework/deletions.go",
		test: "TestARefusedDeletionKeepsNoOthers",
		old:  "d.zxid, d.own, d.paths, d.refused = answer.zxid, primitives.Created{}, d.refused, nil",
		new:  "d.zxid, d.own, d.paths, d.refused = answer.zxid, primitives.Created{}, nil, nil",
	},
	{
		name: "what was refused is forgotten with an own node", file: "framework/deletions.go",
		test: "TestARefusedCompanionIsStillToBeDeleted",
		old:  "if len(d.paths) == 0 && !deletesOwn {", new: "if len(d.paths) == 0 && d.own.Path == \"\" {",
	},
	{
		name: "a transaction of creates asks no conditions", file: "framework/protected.go",
		test: "TestATransactionOfCreatesAsksItsConditions",
		old:  "\tif err := checkConditions(ops); err != nil {\n\t\treturn nil, nil, otherRefusal{err}\n\t}\n", new: "",
	},
	{
		name: "a transaction asks no conditions", file: "framework/operations.go",
		test: "TestAConditionRefusesBeforeSending",
		old:  "\t\tif err := checkConditions(ops); err != nil {\n\t\t\treturn nil, err\n\t\t}\n", new: "",
	},
	{
		name: "an ephemeral node of anyone settles a create", file: "framework/settle.go",
		test: "TestAnEphemeralNodeOfAnotherSessionIsNotOurs",
		old:  "case mode == Ephemeral && r.stat.EphemeralOwner == a.t.sessionID():",
		new:  "case mode == Ephemeral && r.stat.EphemeralOwner != 0:",
	},

	// Writes whose answer is lost.
	{
		name: "a request that was not sent counts as lost", file: "framework/requests.go",
		test: "TestAWriteThatNeverLeftIsNoTry",
		old:  "		return errNotSent\n",
		new:  "		return fmt.Errorf(\"%w: %w\", ErrOutcomeUnknown, ErrSuspended)\n",
	},
	{
		name: "a set of the same data by anyone is a success", file: "framework/settle.go",
		test: "TestUnknownOutcomeIsReported",
		old:  "	case version == AnyVersion || r.stat.Czxid > seen:\n",
		new: "	case version != AnyVersion && bytes.Equal(r.data, data):\n		return r.stat, nil\n	case " +
			"version == AnyVersion || r.stat.Czxid > seen:\n",
	},
	{
		name: "a set of a node that was made anew is settled by its version", file: "framework/settle.go",
		test: "TestUnknownOutcomeIsReported",
		old:  "	case version == AnyVersion || r.stat.Czxid > seen:\n", new: "	case version == AnyVersion:\n",
	},
	{
		name: "a set that has happened is sent again", file: "framework/settle.go",
		test: "TestUnknownOutcomeIsReported",
		old:  "	case r.stat.Mzxid <= seen:\n", new: "	case version == AnyVersion:\n",
	},
	{
		name: "an answer that is not whole has results", file: "framework/requests.go",
		test: "TestAnAnswerThatIsNotWholeHasNoResults",
		old:  "if h.Decode(d); d.Err() != nil {\n			return nil",
		new:  "if h.Decode(d); d.Err() != nil {\n			return rs",
	},
	{
		name: "a sync does not bring the leader up to date", file: "framework/operations.go",
		test: "TestSyncBringsTheServerUpToDate",
		old:  "a.sync(full) })", new: "a.zkSync(full) })",
	},
	{
		name: "a reader that watches begins with the leader's state", file: "framework/primitives.go",
		test: "TestFollowStartsAfterSync",
		old:  "	if strict {\n		return p.s.Sync(ctx, path)",
		new:  "	if strict && path == \"\" {\n		return p.s.Sync(ctx, path)",
	},
	{
		name: "a write is settled without a sync", file: "framework/settle.go",
		old: "			if err := a.sync(\"/\"); err != nil {\n				var none T\n				return " +
			"none, err\n			}\n", new: "",
		redundant: "the in-memory server has one copy of the tree; on an ensemble the next server may not have " +
			"applied the write yet",
	},
	{
		name: "a deletion of a node made anew is sent again", file: "framework/settle.go",
		test: "TestUnknownOutcomeIsReported",
		old:  "	case err == nil && st.Czxid <= seen:\n", new: "	case err == nil && st.Czxid != 0:\n",
	},
	{
		name: "a node that is gone was deleted by us", file: "framework/settle.go",
		test: "TestUnknownOutcomeIsReported",
		old:  "\treturn checkUndisturbed(a, full, seen)\n}\n\n// settleCreate",
		new:  "	return nil\n}\n\n// settleCreate",
	},
	{
		name: "a create whose node is gone is sent again", file: "framework/settle.go",
		test: "TestUnknownOutcomeIsReported",
		old:  "	case err == nil && st.Pzxid <= seen:\n", new: "	case err == nil && st.Pzxid != 0:\n",
	},
	{
		name: "a persistent node of the same data is ours", file: "framework/settle.go",
		test: "TestUnknownOutcomeIsReported",
		old:  "	case r.stat.Version == 0 && !bytes.Equal(r.data, data):\n		return ErrNodeExists\n",
		new:  "	case bytes.Equal(r.data, data):\n		return nil\n",
	},
	{
		name: "a node from before the create is ours", file: "framework/settle.go",
		test: "TestALostWriteOfAnothersNode",
		old:  "	case r.stat.Czxid <= seen:\n		return ErrNodeExists\n", new: "",
	},
	{
		name: "a write that its context has left says nothing of its outcome", file: "framework/requests.go",
		test: "TestUnknownOutcomeIsReported",
		old:  "\t\treturn outcome[T]{err: t.callEnded(ctx), lost: true}\n",
		new:  "\t\treturn outcome[T]{err: t.callEnded(ctx)}\n",
	},
	{
		name: "a write that its session has left says nothing of its outcome", file: "framework/settle.go",
		test: "TestUnknownOutcomeIsReported",
		old:  "			return outcome[T]{v: v, err: err, lost: true}.asWrite()\n",
		new:  "			return v, err\n",
	},

	// Servers.
	{
		name: "a name is left to the dialer", file: "framework/client.go", test: "TestOneNameForTheEnsemble",
		old: "newServerList(cfg, !o.dialed, c.log)", new: "newServerList(cfg, false, c.log)",
	},
	{
		name: "names are looked up once", file: "framework/servers.go", test: "TestANameIsLookedUpAgain",
		old: "\t\tround := s.resolveAll(ctx, list)\n",
		new: "\t\tround := s.round\n\t\tif round == nil {\n\t\t\tround = s.resolveAll(ctx, list)\n\t\t}\n",
	},
	{
		name: "servers are tried in the order of the configuration", file: "framework/servers.go",
		test: "TestNoServerIsPreferred",
		old:  "	rand.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })\n", new: "",
	},
	{
		name: "the server that was lost may come first", file: "framework/servers.go",
		test: "TestLostServerIsTriedLast",
		old:  "		round = append(slices.Delete(round, i, i+1), s.lastTried)\n", new: "		_ = i\n",
	},
	{
		name: "all clients of a lost server dial at once", file: "framework/servers.go",
		test: "TestLostServerIsTriedLast",
		old:  "		return rand.N(s.retryBase), nil\n", new: "		return 0, nil\n",
	},
	{
		name: "a certificate is verified for the address", file: "framework/servers.go",
		test: "TestACertificateIsOfTheName",
		old:  "host, _, err := net.SplitHostPort(server)",
		new:  "server = address\n			host, _, err := net.SplitHostPort(server)",
	},

	{
		name: "an outage is told of in each round", file: "framework/servers.go", test: "TestOutageIsLoggedOnce",
		old: "		if s.outage.IsZero() {", new: "		if true {",
	},
	{
		name: "a throttled request is not repeated", file: "framework/transport.go",
		test: "TestAThrottledRequestIsRepeated",
		old:  " || errors.Is(err, errQueueFull) || errors.Is(err, ErrOverloaded)",
		new:  " || errors.Is(err, errQueueFull)",
	},

	// What a session owns.
	{
		name: "a session has no bound", file: "framework/owned.go", test: "TestASessionOwnsNoMoreThanItsBound",
		old: "if created <= deleted || sum+created <= o.max {", new: "if true {",
	},
	{
		name: "creates under way are not counted", file: "framework/owned.go", test: "TestCreatesUnderWayAreCounted",
		old: "		sum := o.bytes + o.reserved + o.doubtful\n", new: "		sum := o.bytes + o.doubtful\n",
	},
	{
		name: "creates of an unknown outcome are not counted", file: "framework/owned.go",
		test: "TestCreatesOfAnUnknownOutcomeAreCounted",
		old:  "\to.settleReservation(reserved, doubtful, there...)\n",
		new:  "\t_ = doubtful\n\to.settleReservation(reserved, 0)\n",
	},
	{
		name: "a deletion makes no room", file: "framework/owned.go", test: "TestASessionOwnsNoMoreThanItsBound",
		old: "		delete(o.paths, full)\n		o.bytes -= ownedSize(full, Ephemeral)\n",
		new: "		delete(o.paths, full)\n",
	},
	{
		name: "the servers are not asked at the bound", file: "framework/owned.go",
		test: "TestDeletionByOthersFreesEphemeralBytes",
		old:  "if now := o.clock.Now(); looking == nil &&",
		new:  "if now := o.clock.Now(); looking == nil && o.max < 0 &&",
	},
	{
		name: "the servers are asked each time", file: "framework/owned.go", test: "TestTheServersAreAskedSeldom",
		old: "(!o.everLookedUp || now-o.lookedUpAt >= heartbeatInterval(o.timeout()))", new: "now >= 0",
	},
	{
		name: "a swap is refused at the bound", file: "framework/owned.go", test: "TestASwapAtTheBoundIsLetThrough",
		old: "if created <= deleted || sum+created", new: "if sum+created",
	},
	{
		name: "a swap against a node of others passes", file: "framework/owned.go",
		test: "TestASwapAtTheBoundIsLetThrough",
		old:  "if _, there := o.paths[full]; there && op.Kind == primitives.OpDelete {",
		new:  "if op.Kind == primitives.OpDelete {",
	},
	{
		name: "a refused create stays counted", file: "framework/operations.go",
		test: "TestRefusedCreateDoesNotCountNodes",
		old:  "\tdefault:\n\t\ts.owned.settleReservation(created, 0)\n", new: "	default:\n",
	},

	// What is queued.
	{
		name: "a proof of life waits behind what is queued", file: "framework/heartbeat.go",
		test: "TestHeartbeatOvertakesQueuedRequests",
		old:  "requester{ctx, s.transport, true}.multi(", new: "requester{ctx, s.transport, false}.multi(",
	},
	{
		name: "any number of bytes is queued", file: "framework/requests.go", test: "TestSendQueueIsBounded",
		old: "	a.t.sendRequests(call)\n", new: "	a.t.mon.Send(call)\n",
	},
	{
		name: "deletions without an answer are not the first on a connection", file: "framework/sessionloop.go",
		test: "TestAQueuedDeletionComesFirst",
		old:  "\ts.deletions.resendAll(func(calls []*link.Call) { s.transport.mon.Admit(st.Generation, calls...) })\n",
		new: "\ts.transport.mon.Admit(st.Generation)\n\ttime.AfterFunc(s.Timeout()/100, func() { " +
			"s.deletions.resendAll(func(calls []*link.Call) { s.transport.mon.Admit(st.Generation, calls...) }) })\n",
	},
	{
		name: "deletions do not end with their session", file: "framework/sessionloop.go",
		test: "TestADeletionEndsWithItsClient",
		old:  "\ts.transport.mon.Close()\n\ts.deletions.endAll()\n", new: "	s.transport.mon.Close()\n",
	},

	// Clients.
	{
		name: "Connect waits for its connection's end", file: "framework/client.go",
		test: "TestConnectEndsWithItsContext",
		old:  "		case <-c.stopped:\n		case <-ctx.Done():\n		}\n		return nil, &Conn",
		new:  "		case <-c.stopped:\n		}\n		return nil, &Conn",
	},
	{
		name: "States misses the end", file: "framework/client.go", test: "TestStatesTellsOfTheEnd",
		old: "				if !next.isReady() {", new: "				if true {",
	},

	// Watches.
	{
		name: "a read overtakes the request that arms its watch", file: "framework/watch.go",
		test: "TestSharedWatchTellsAllOfAChange",
		old:  "\te.watches.asking.Lock()\n\ta.t.mon.Send(e.prepareRead(e.armOnce(), func(",
		new: "\tarmed := e.armOnce()\n\tif armed {\n\t\twaitClosed(1e6, " +
			"nil)\n\t}\n\te.watches.asking.Lock()\n\ta.t.mon.Send(e.prepareRead(armed, func(",
	},
	{
		name: "watchers are not told of a reconnect", file: "framework/sessionloop.go",
		test: "TestAReconnectWakesWatchers",
		old:  "		s.watches.onReconnect() // before the first watch of this connection, which it must not end\n",
		new:  "",
	},
	{
		name: "who joins a question for a missing node is not told", file: "framework/watch.go",
		test: "TestWatchJoinedDuringExistsOfMissingNodeFires",
		old:  "\t\te.endWithEvent(Event{Kind: NodeDeleted})\n", new: "\t\te.forgetIfUnused()\n",
	},

	{
		name: "a node of a session that has ended is deleted before the others", file: "framework/primitives.go",
		test: "TestEndedSessionDeletesNoSingleNode",
		old:  "s.ctx.Err() != nil || !s.tasks.Begin()", new: "!s.tasks.Begin()",
	},

	// Reads of many nodes.
	{
		name: "an answer may have any size", file: "framework/bulkreads.go",
		test: "TestHeartbeatsAreAnsweredBetweenLargeReads",
		old:  "	bulkAnswer     = 512 << 10 ", new: "	bulkAnswer     = 64 << 20 ",
	},
	{
		name: "any number of answers is awaited", file: "framework/bulkreads.go",
		test: "TestHeartbeatsAreAnsweredBetweenLargeReads",
		old:  "if b.expected+bytes <= bulkExpected {", new: "if true {",
	},
	{
		name: "the size of names is not counted", file: "framework/readmany.go",
		test: "TestHeartbeatsAreAnsweredBetweenLargeLists",
		old:  "			return partOverhead + size\n", new: "			return partOverhead + min(size, 0)\n",
	},
	{
		name: "a read whose connection was lost is repeated as it was", file: "framework/readmany.go",
		test: "TestALargeAnswerCostsAtMostOneConnection",
		old:  "	case o.lost && errors.Is(o.err, ErrSuspended):\n		call.beCareful()\n", new: "",
	},
	{
		name: "the answer for a single node that is too large fails the call", file: "framework/readmany.go",
		test: "TestANodeThatIsTooLargeForAnAnswerHasItsOwnError",
		old:  "	case errors.Is(o.err, ErrTooLarge) && n == 1:\n		return []T{k.refused(o.err)}, nil\n", new: "",
	},

	// Nodes that are followed.
	{
		name: "a followed node is read without a sync", file: "framework/follow.go", test: "TestFollowStartsAfterSync",
		old: "if sync || reads.isReadDue() {", new: "if sync && false {",
	},
	{
		name: "a follower that joins takes the value that is there", file: "framework/follow.go",
		test: "TestFollowStartsAfterSync",
		old:  "if n.answered < read {", new: "if n.answered < read && n.changes == 0 {",
	},
	{
		name: "a node that was created anew with the same version is not noticed", file: "framework/follow.go",
		test: "TestFollowSurvivesOutages",
		old:  "value.Zxid == n.latest.Zxid)", new: "value.Stat.Version == n.latest.Stat.Version)",
	},
	{
		name: "a value of a lower version is taken for an older one", file: "framework/follow.go",
		test: "TestAnOlderStateOfANodeIsRefused",
		old:  "if value.Zxid < n.floor {",
		new:  "if value.Zxid < n.floor || value.Stat.Version < n.latest.Stat.Version {",
	},
	{
		name: "an older value of a followed node is taken", file: "framework/follow.go",
		test: "TestAnOlderStateOfANodeIsRefused",
		old:  "if value.Zxid < n.floor {", new: "if value.Zxid < n.floor && false {",
	},
	{
		name: "all clients read their followed nodes at once after a reconnect", file: "framework/follow.go",
		test: "TestReadsOfFollowersAreSpreadAfterAReconnect",
		old:  "rand.N(min(n.all.cfg.FollowSpread, max(s.Timeout()/4, 1)))",
		new:  "rand.N(min(n.all.cfg.FollowSpread, max(s.Timeout()/4, 1), 1))",
	},
	{
		name: "the last follower leaves its watch on the server", file: "framework/follow.go",
		test: "TestFollowersShareOneWatchAndItsReads",
		old:  "s.readAndWatch(ctx, watchData, path, true)", new: "s.readAndWatch(ctx, watchData, path, false)",
	},
	{
		name: "the last follower leaves the goroutine", file: "framework/follow.go",
		test: "TestFollowersShareOneWatchAndItsReads",
		old:  "\t\tn.cancel()\n\t\t<-n.ended\n", new: "",
	},

	// Sessions of a client.
	{
		name: "a session of an earlier epoch is published", file: "framework/client.go",
		old: "s.ctx.Err() != nil || c.session != nil && c.session.epoch > s.epoch", new: "s.ctx.Err() != nil",
		redundant: "a session ends before the next one is opened, and one that has ended is refused",
	},
	{
		name: "a file without credentials is none", file: "framework/config.go",
		test: "TestAFileWithoutCredentialsIsRefused",
		old:  `return invalidConfig("%s is empty: want user:password", source)`, new: "return nil",
	},
	{
		name: "the cause of a context is taken for an answer", file: "internal/failure/failure.go",
		test: "TestEndedTellsErrorAndCause",
		old:  "return !own && errors.Is(e.cause, target)", new: "return (!own || true) && errors.Is(e.cause, target)",
	},
	{
		name: "the cause of a context is taken for the error of a call", file: "internal/failure/failure.go",
		test: "TestEndedHidesErrorsOfOtherCalls",
		old:  "|| t.PkgPath() == frameworkPackage", new: "",
	},
}
