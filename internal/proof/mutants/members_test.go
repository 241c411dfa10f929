package mutants

func init() { lists["members"] = membersMutants }

// membersMutants are the safeguards of package members.
var membersMutants = []mutant{
	{
		name: "an answer replaces a request that came after a withdrawal", file: "members/cordonhandler.go",
		test: "TestAnAnswerToAWithdrawnRequestReplacesNoOther",
		old:  "	if errors.Is(err, framework.ErrNoNode) || err == nil && st.Mzxid != c.zxid {",
		new:  "	if errors.Is(err, framework.ErrNoNode) || err == nil && st.Mzxid != c.zxid && false {",
	},
	{
		name: "an answer removes what a newer release has written", file: "members/record.go",
		test: "TestTheCordonOfANewerReleaseKeepsItsFields",
		old:  "	r.unknown = unknown\n", new: "	_ = unknown\n",
	},
	{
		name: "an answer lowers the version of a newer release's cordon", file: "members/record.go",
		test: "TestTheCordonOfANewerReleaseKeepsItsFields",
		old:  "max(r.version, recordVersion)", new: "0*r.version+recordVersion",
	},
	{
		name: "an answer removes the fields of another's", file: "members/record.go",
		test: "TestTheCordonOfANewerReleaseKeepsItsFields",
		old:  "			answers[other] = data\n",
		new:  "			answers[other], _ = json.Marshal(r.decodedAnswers()[other])\n			_ = data\n",
	},
	{
		name: "a request removes what a newer release has written", file: "members/cordon.go",
		test: "TestTheCordonOfANewerReleaseKeepsItsFields",
		old:  "		wanted.version, wanted.unknown = present.recordVersion, present.unknown\n", new: "",
	},
	{
		name: "a member joins again with what it joined with", file: "members/membership.go",
		test: "TestAMemberJoinsAgainOnItsNextSession",
		old: "func (m *Membership) stayOnSession(s *framework.Session) error {\n	data, revision, err := " +
			"m.nodeRecord()",
		new: "func (m *Membership) stayOnSession(s *framework.Session) error {\n	m.mu.Lock()\n	m.info = " +
			"Info{}\n	m.mu.Unlock()\n	data, revision, err := m.nodeRecord()",
	},
	{
		name: "Update outlasts Leave", file: "members/membership.go", test: "TestUpdateEndsWithLeave",
		old: "case <-m.ctx.Done(): // the member leaves",
		new: "case <-context.Background().Done(): // the member leaves",
	},
	{
		name: "Leave leaves the node of a former session", file: "members/membership.go",
		test: "TestLeaveDeletesTheNodeOfAFormerSession",
		old:  "Discard(nil, node, m.former...)", new: "Discard(nil, node)",
	},
	{
		name: "the node of a member's former session stays", file: "members/membership.go",
		test: "TestAFormerSessionShowsNothing",
		old:  "	for len(m.former) > 0 {\n", new: "	for len(m.former) > 0 && false {\n",
	},
	{
		name: "the pauses before a member joins again only grow", file: "internal/recipe/session.go", pkg: "./members",
		test: "TestAMemberWhoseNodeIsDeletedNowAndThenJoinsAgainAtOnce",
		old:  "if time.Since(began) > seriesWindow {", new: "if time.Since(began) > 1000*seriesWindow {",
	},
	{
		name: "a member whose node was deleted does not join again", file: "members/membership.go",
		test: "TestAMemberWhoseNodeIsDeletedNowAndThenJoinsAgainAtOnce",
		old:  "it joins again\", \"path\", m.group.path, \"error\", err)\n	return true\n",
		new:  "it joins again\", \"path\", m.group.path, \"error\", err)\n	return false\n",
	},
	{
		name: "an answer is stored that JSON changes", file: "internal/recipe/record.go", pkg: "./members",
		test: "TestAnAnswerIsWrittenOnce",
		old:  "	text = strings.ToValidUTF8(text, \"\\uFFFD\")\n", new: "",
	},
	{
		name: "an answer is cut within a character", file: "internal/recipe/record.go", pkg: "./members",
		test: "TestAnAnswerIsWrittenOnce",
		old:  "strings.ToValidUTF8(text[:most], \"\")", new: "text[:most]",
	},
	{
		name: "a refused answer ends the membership", file: "members/membership.go",
		test: "TestAMemberStaysThoughItsAnswerIsRefused",
		old:  "	if refused {\n",
		new:  "	if refused {\n		return framework.ErrNoAuth\n	}\n	if refused {\n",
	},
	{
		name: "a refused answer is not tried again", file: "members/membership.go",
		test: "TestARefusedAnswerIsTriedAgain",
		old:  "	if refused {\n", new: "	if refused && false {\n",
	},
	{
		name: "each refused join is remembered", file: "members/membership.go",
		test: "TestRefusedJoinsLeaveNothingToDelete",
		old:  "	case errors.Is(err, framework.ErrSessionLost): // it may", new: "	default: // it may",
	},
	{
		name: "a panic keeps the turn of an update", file: "members/membership.go",
		test: "TestAPanicInAnUpdateIsHarmless",
		old:  "	next := m.Info()\n	change(&next)\n",
		new:  "	m.mu.Lock()\n	next := m.info.cloneInfo()\n	change(&next)\n	m.mu.Unlock()\n",
	},
	{
		name: "an update ends before it is written", file: "members/membership.go",
		test: "TestUpdatesSurviveLostReplies",
		old:  "if stored >= mine {", new: "if stored >= mine || true {",
	},
	{
		name: "what others write into a member's node stays", file: "members/membership.go",
		test: "TestUpdatesSurviveLostReplies",
		old:  "if !bytes.Equal(present, data) {", new: "if !bytes.Equal(present, data) && m.stored != revision {",
	},
	{
		name: "an update is not announced", file: "members/membership.go", test: "TestWatchersReceiveChanges",
		old: "framework.SetOp(node, data, st.Version), m.group.announceOp())",
		new: "framework.SetOp(node, data, st.Version))",
	},
	{
		name: "a member is listed before it knows its cordon", file: "members/membership.go",
		test: "TestAMemberIsListedAfterItKnowsItsCordon",
		old:  "	case <-m.cordonHandler.known:\n", new: "	default:\n",
	},
	{
		name: "a node that was changed since the list is told early", file: "members/view.go",
		test: "TestChangesBetweenTwoReadsAreInOrder",
		old:  "if len(later) > 0 && !r.anyMoment {", new: "if len(later) > 0 && false {",
	},
	{
		name: "a node that was made again since the list is told early", file: "members/view.go",
		test: "TestACordonIsCreatedAgainWhileItIsRead",
		old:  "			delete(now, name)\n", new: "",
	},
	{
		name: "a node that was not known is told in a later state", file: "members/view.go",
		test: "TestChangesBetweenTwoReadsAreInOrder",
		old:  "	if len(again) > 0 {\n", new: "	if len(again) > 0 && false {\n",
	},
	{
		name: "changes are told in the order of the members", file: "members/view.go", test: "TestWatchesAreInOrder",
		old: "cmp.Or(cmp.Compare(a.Zxid, b.Zxid), cmp.Compare(",
		new: "cmp.Or(0*cmp.Compare(a.Zxid, b.Zxid), cmp.Compare(",
	},
	{
		name: "a former session's node counts", file: "members/view.go", test: "TestTheNewestNodeOfAnIDCounts",
		old: "if names[len(names)-1] == name {", new: "if names[0] == name {",
	},
	{
		name: "a member that came back has changed", file: "members/view.go",
		test: "TestASlowReaderGetsTheLatestStates",
		old:  "case m.czxid > was.czxid:", new: "case m.czxid == 0:",
	},
	{
		name: "a watch begins without a sync", file: "members/watch.go", test: "TestAWatchBeginsWithASync",
		old: "		if sync {\n", new: "		if sync && w.last != nil {\n",
	},
	{
		name: "a list is read without a sync", file: "members/watch.go", test: "TestAWatchBeginsWithASync",
		old: "		if err := s.Sync(ctx, g.path); err != nil {\n			return err\n		}\n", new: "",
	},
	{
		name: "who is known is read again", file: "members/view.go", test: "TestAWatcherReadsOnlyNewMembers",
		old: "ok && st.Mzxid == r.dirMzxid {", new: "ok && false {",
	},
	{
		name: "each join of a large group is listed", file: "members/watch.go", test: "TestAWatcherReadsOnlyNewMembers",
		old: "len(w.reader.nodes) > smallGroup {", new: "len(w.reader.nodes) > 1000*smallGroup {",
	},
	{
		name: "all members are read with each update", file: "members/watch.go", test: "TestAWatcherCostsFewRequests",
		old: "const readInterval = 100 * time.Millisecond", new: "const readInterval = time.Microsecond",
	},
	{
		name: "a drain is acknowledged when it begins", file: "members/cordonhandler.go",
		test: "TestADrainIsAcknowledgedWhenItHasEnded",
		old:  "	ctx, w.cancel = context.WithCancelCause(ctx)\n",
		new: "	ctx, w.cancel = context.WithCancelCause(ctx)\n	h.noteAnswer(c.request, Answer{State: " +
			"Drained}, false)\n",
	},
	{
		name: "the end of a withdrawn drain is an answer", file: "members/cordonhandler.go",
		old: "	if first != (h.request == request) {\n		h.request, h.reply = request, reply\n",
		new: "	if first != (h.request == request) || !first {\n		h.reply = reply\n		if first " +
			"{\n			h.request = request\n		}\n",
		redundant: "the context of a withdrawn drain has ended, and its function was waited for: it notes nothing",
	},
	{
		name: "an uncordon that is repeated removes a later cordon", file: "members/cordon.go",
		test: "TestAnUncordonThatIsRepeatedRemovesNoOtherCordon",
		old:  "err == nil && *created != 0 && st.Czxid != *created {",
		new:  "err == nil && *created != 0 && st.Czxid == 0 {",
	},
	{
		name: "a late uncordon removes a later cordon", file: "members/cordon.go",
		test: "TestALateUncordonRemovesNoLaterCordon",
		old:  "framework.CheckOp(g.path, group.Version), framework.DeleteOp(node",
		new:  "framework.CheckOp(g.path, 0*group.Version-1), framework.DeleteOp(node",
	},
	{
		name: "an uncordon removes a cordon at any version", file: "members/cordon.go",
		old: "framework.DeleteOp(node, st.Version)", new: "framework.DeleteOp(node, framework.AnyVersion)",
		redundant: "it needs a delete that the servers apply after another client has removed the cordon and made one",
	},
	{
		name: "a drain that is withdrawn goes on", file: "members/cordonhandler.go", test: "TestADrainThatIsWithdrawn",
		old: "	present.stopAndWait(ErrWithdrawn)\n", new: "",
	},
	{
		name: "a drain ends with its session", file: "members/cordonhandler.go",
		test: "TestADrainIsAcknowledgedWhenItHasEnded",
		old:  "if present != nil && c != nil && c.Drain && c.request == present.request {",
		new:  "if present != nil && c != nil && c.Drain && false {",
	},
	{
		name: "a member leaves while its drain function runs", file: "members/membership.go",
		test: "TestAMemberLeavesDuringADrain",
		old:  "	m.waitForDrain(ctx)\n", new: "",
	},
	{
		name: "a member leaves before the servers have its answer", file: "members/membership.go",
		test: "TestAMemberLeavesDuringADrain",
		old:  "	case <-latest.settled:\n", new: "	case <-latest.ended:\n",
	},
	{
		name: "a member that leaves waits for an answer that is refused", file: "members/cordonhandler.go",
		test: "TestAMemberLeavesThoughItsAnswerIsRefused",
		old:  "	h.settleDrain(request, reply)\n	if this", new: "	if this",
	},
	{
		name: "a member that leaves waits for a drain that was withdrawn", file: "members/cordonhandler.go",
		test: "TestAMemberLeavesDuringADrainThatIsWithdrawn",
		old:  "		present.settle() // last", new: "		// last",
	},
	{
		name: "an update of a drain function waits for the function's end", file: "members/membership.go",
		test: "TestAnUpdateOfADrainFunctionEndsWithTheMembership",
		old:  "		case <-m.unlisted:\n", new: "		case <-m.gone:\n",
	},
	{
		name: "one process's answer is enough", file: "members/member.go", test: "TestAMemberDiesDuringADrain",
		old: "case answer == \"\", c.Drain && answer != Drained:\n			state = pending",
		new: "case answer == \"\", c.Drain && answer != Drained:\n			if !c.isDrained() " +
			"{\n				state = pending\n			}",
	},
	{
		name: "a member that is away is drained", file: "members/cordon.go", test: "TestAMemberDiesDuringADrain",
		old: "case member == nil && cordon.isDrained(), ", new: "case member == nil, ",
	},
	{
		name: "a member that joins again unseen has left", file: "members/cordon.go",
		test: "TestAMemberJoinsAgainWhileDrainIsCutOff",
		old:  "		if !errors.Is(err, ErrLeft) {\n", new: "		if !errors.Is(err, ErrLeft) || true {\n",
	},
	{
		name: "a member that joins again unseen, acknowledges and leaves has left", file: "members/cordon.go",
		test: "TestAMemberJoinsAgainWhileDrainIsCutOff",
		old:  "member == nil && cordon != nil && !cordon.isDrained() {", new: "member == nil && cordon != nil {",
	},
	{
		name: "a member that is away has left", file: "members/cordon.go", test: "TestASessionIsLostDuringADrain",
		old: "time.AfterFunc(g.client.Config().SessionTimeout,",
		new: "time.AfterFunc(g.client.Config().SessionTimeout/1000,",
	},
	{
		name: "a lost reply of a request asks twice", file: "members/cordon.go",
		old:       "if present.request == wanted.Request || present.asksFor(wanted.Drain) {",
		new:       "if present.asksFor(wanted.Drain) {",
		redundant: "a request that is there asks for as much, unless it has failed meanwhile",
	},
	{
		name: "a drain that was asked for begins anew with each call", file: "members/cordon.go",
		test: "TestADrainIsAcknowledgedWhenItHasEnded",
		old:  "if present.request == wanted.Request || present.asksFor(wanted.Drain) {",
		new:  "if present.request == wanted.Request {",
	},
}
