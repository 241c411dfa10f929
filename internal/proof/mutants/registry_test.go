package mutants

func init() { lists["registry"] = registryMutants }

// registryMutants are the safeguards of package registry.
var registryMutants = []mutant{
	{
		name: "a pick panics when all instances are ejected meanwhile", file: "registry/balance.go",
		test: "TestInstancesThatAreEjectedWhileOneIsPicked",
		old:  "	case first == nil:\n		return second\n", new: "",
	},
	{
		name: "Update outlasts Close", file: "registry/registration.go", test: "TestUpdateEndsWithClose",
		old: "	g.failChanges(err) // before", new: "	defer g.failChanges(err) // before",
	},
	{
		name: "an instance whose node was deleted is not registered again", file: "registry/registration.go",
		test: "TestAnInstanceIsRegisteredAgain",
		old: "		if errors.Is(err, framework.ErrNoNode) {\n			g.nodeSession = " +
			"nil\n			continue\n		}\n		if err != nil {\n			return " +
			"err\n		}\n		if st",
		new: "		if errors.Is(err, framework.ErrNoNode) " +
			"{\n			<-g.ctx.Done()\n			continue\n		}\n		if err != nil " +
			"{\n			return err\n		}\n		if st",
	},
	{
		name: "a former session's node counts as registered", file: "registry/registration.go",
		old:       "	for g.nodeSession != s {\n",
		new:       "	for g.nodeSession == nil {\n",
		redundant: "the look at the node that follows sees that it is gone or another session's",
	},
	{
		name: "what others have changed is not registered again", file: "registry/registration.go",
		test: "TestAnInstanceIsRegisteredAgain",
		old:  "	g.data = data\n	g.mu.Lock()",
		new:  "	g.mu.Lock()",
	},
	{
		name: "another session's node is deleted", file: "registry/registration.go", test: "TestAnIDOfAnotherSession",
		old: "if g.lastOwner != 0 && st.EphemeralOwner == g.lastOwner {",
		new: "if st.EphemeralOwner != 0 {",
	},
	{
		name: "an update ends before it is written", file: "registry/registration.go",
		test: "TestALostReplyRegistersOnce",
		old:  "	select {\n	case <-one.done:\n		return failure.Wrap(\"update\"",
		new: "	select {\n	default:\n		return nil\n	case <-one.done:\n		return " +
			"failure.Wrap(\"update\"",
	},
	{
		name: "a health check enables what an operator has disabled while it failed", file: "registry/instance.go",
		test: "TestAnUnhealthyInstanceIsDisabled",
		old:  "(i.Disabled == disabledByCheck || !parsePayload(i.Payload).holds(\"disabled\")):",
		new:  "(i.Disabled != \"\" || !parsePayload(i.Payload).holds(\"disabled\")):",
	},
	{
		name: "a health check enables what an operator has disabled while it succeeded",
		file: "registry/registration.go", test: "TestAHealthCheckEnablesWhatItHasDisabled",
		old: "		if present.Disabled == \"\" {\n", new: "		if present.Disabled == \"\" && false {\n",
	},
	{
		name: "a health check enables what Register has disabled", file: "registry/registration.go",
		test: "TestAHealthCheckEnablesWhatItHasDisabled",
		old:  "	if o.health != nil && i.Disabled == \"\" {\n", new: "	if o.health != nil {\n",
	},
	{
		name: "an instance with a text as payload stays disabled", file: "registry/instance.go",
		test: "TestAHealthCheckEnablesWhatItHasDisabled",
		old:  "(i.Disabled == disabledByCheck || !parsePayload(i.Payload).holds(\"disabled\")):",
		new:  "(i.Disabled == disabledByCheck):",
	},
	{
		name: "a reason is stored that JSON changes", file: "internal/recipe/record.go", pkg: "./registry",
		test: "TestAHealthCheckEnablesWhatItHasDisabled",
		old:  "	text = strings.ToValidUTF8(text, \"\\uFFFD\")\n", new: "",
	},
	{
		name: "the error of a health check is stored whole", file: "registry/instance.go",
		test: "TestALongErrorOfAHealthCheckIsCut",
		old:  "recipe.StoredText(err.Error(), maxCheckError)", new: "recipe.StoredText(err.Error(), 1<<30)",
	},
	{
		name: "a change is tried under the mutex", file: "registry/registration.go",
		test: "TestAPanicInAnUpdateIsHarmless",
		old:  "	one.apply(&probe) // without the mutex: it may panic\n",
		new:  "	g.mu.Lock()\n	one.apply(&probe)\n	g.mu.Unlock()\n",
	},
	{
		name: "a refused update counts as a refused registration", file: "registry/registration.go",
		test: "TestARefusedUpdateLeavesTheRegistration",
		old:  "		if err != nil && !isRefusal(err) {",
		new:  "		if err != nil && !errors.Is(err, ErrInvalid) {",
	},
	{
		name: "a refused create ends a registration that was listed", file: "registry/registration.go",
		test: "TestARefusedRegistrationIsTriedAgain",
		old:  "framework.ErrAuthFailed) || !g.wasListed() {",
		new:  "framework.ErrAuthFailed) || !g.wasListed() || true {",
	},
	{
		name: "Register waits while the servers refuse", file: "registry/registration.go",
		test: "TestARefusedRegistrationIsTriedAgain",
		old:  "framework.ErrAuthFailed) || !g.wasListed() {", new: "framework.ErrAuthFailed) {",
	},
	{
		name: "Drain leaves a node that the servers do not let it change", file: "registry/registration.go",
		test: "TestARefusedUpdateLeavesTheRegistration",
		old:  "	return errors.Join(err, g.Close(ctx))\n",
		new: "	if err != nil && !errors.Is(err, ErrInvalid) {\n		return err\n	}\n	return " +
			"errors.Join(err, g.Close(ctx))\n",
	},
	{
		name: "Register waits for the node of a call that was given up", file: "registry/registration.go",
		test: "TestRegisterEndsWithItsContext",
		old:  "	g.cancel()\n	return nil, failure.Wrap(\"register\"",
		new:  "	g.cancel()\n	<-g.tasks.Done()\n	return nil, failure.Wrap(\"register\"",
	},
	{
		name: "Drain leaves a node that it cannot change", file: "registry/registration.go",
		test: "TestDrainOfAnOverwrittenNode",
		old:  "	return errors.Join(err, g.Close(ctx))\n",
		new:  "	if err != nil {\n		return err\n	}\n	return g.Close(ctx)\n",
	},
	{
		name: "Drain does not wait", file: "registry/registration.go", test: "TestDrainIsNoticedBeforeTheEnd",
		old: "recipe.Pause(g.ctx, linger)",
		new: "recipe.Pause(g.ctx, 0*linger)",
	},
	{
		name: "an address of the servers is not checked", file: "registry/instance.go",
		test: "TestAnInstanceIsCuratorsJSON",
		old:  "	return i, i.checkFields()\n",
		new:  "	return i, nil\n",
	},
	{
		name: "a Java program's payload is lost", file: "registry/instance.go", test: "TestAnInstanceIsCuratorsJSON",
		old: "	changed := false\n",
		new: "	changed := false\n	p.fields = map[string]json.RawMessage{}\n",
	},
	{
		name: "a Java program's field is overwritten", file: "registry/instance.go",
		test: "TestAJavaProgramsFieldsStay",
		old:  "		if same || !p.holds(name) {\n", new: "		if same {\n",
	},
	{
		name: "fields are written that have not changed", file: "registry/instance.go",
		test: "TestAJavaProgramsFieldsStay",
		old:  "		if same || !p.holds(name) {\n", new: "		if !p.holds(name) && !same || p.fields == nil {\n",
	},
	{
		name: "a text as payload is replaced", file: "registry/instance.go", test: "TestAnInstanceIsCuratorsJSON",
		old: "	case changed || len(i.Payload) == 0:\n",
		new: "	case changed || len(i.Payload) == 0 || p.fields == nil:\n",
	},
	{
		name: "a weight that the payload cannot hold is lost", file: "registry/instance.go",
		test: "TestAJavaProgramsFieldsStay",
		old:  "	case i.Weight != p.weight && !p.holds(\"weight\"):\n",
		new:  "	case i.Weight != p.weight && !p.holds(\"weight\") && false:\n",
	},
	{
		name: "an instance is changed at any version", file: "registry/registry.go",
		test: "TestTwoChangesAtOnceBothCount",
		old:  "framework.SetOp(node, next, st.Version)",
		new:  "framework.SetOp(node, next, 0*st.Version+framework.AnyVersion)",
	},
	{
		name: "a change is not told to pools", file: "registry/registry.go", test: "TestAPoolIsEmptyAfterASyncedRead",
		old: ", framework.SetOp(dir, nil, framework.AnyVersion))",
		new: ", framework.CheckOp(dir, framework.AnyVersion))",
	},
	{
		name: "the first list is read without a sync", file: "registry/list.go",
		test: "TestAPoolIgnoresAnEmptyListOfALaggingServer",
		old:  "	sync, strict := true, false\n",
		new:  "	sync, strict := false, false\n",
	},
	{
		name: "an empty list of a lagging leader is taken", file: "registry/list.go",
		test: "TestAPoolIgnoresAnEmptyListOfALaggingLeader",
		old:  "f.lastListHadInstances && len(all) == 0 && !provesEmpty;",
		new:  "f.lastListHadInstances && len(all) == 0 && !provesEmpty && f.dir == \"\";",
	},
	{
		name: "the list is empty while the servers are away", file: "registry/pool.go",
		test: "TestAPoolKeepsItsListWhileTheServersAreAway",
		old:  "	l := p.list.Load()\n	if l == nil ||",
		new: "	l := p.list.Load()\n	if status := p.registry.client.Status(); status.State != " +
			"framework.Connected {\n		l = &instanceList{}\n	}\n	if l == nil ||",
	},
	{
		name: "a pool leaves a watch on a missing directory", file: "registry/list.go", test: "TestAPoolLeavesNoWatch",
		old: "	if !f.takeList(nil, nil, provesEmpty) {\n		w.Stop()\n",
		new: "	if !f.takeList(nil, nil, provesEmpty) {\n",
	},
	{
		name: "changes of other programs are not read", file: "registry/list.go",
		test: "TestAPoolReadsChangesOfOtherProgramsAgain",
		old:  "rand.N(f.refresh))",
		new:  "1000*rand.N(f.refresh))",
	},
	{
		name: "what fails is not ejected", file: "registry/balance.go", test: "TestAFailingInstanceIsEjected",
		old: "return until != 0 && now < until",
		new: "return until != 0 && now < until && false",
	},
	{
		name: "what failed is tried five times again", file: "registry/balance.go",
		test: "TestAFailingInstanceIsEjected",
		old:  "	} else if m.failures.Add(1) >= o.failures {\n",
		new:  "	} else if m.failures.Add(1) >= o.failures {\n		m.failures.Store(0)\n",
	},
	{
		name: "the neighbour gets the share of an ejected instance", file: "registry/balance.go",
		test: "TestTheShareOfAnEjectedInstanceIsDivided",
		old:  "	at := rand.IntN(total)\n", new: "	at := 0 * rand.IntN(total)\n",
	},
	{
		name: "there is no panic threshold", file: "registry/balance.go", test: "TestAFailingInstanceIsEjected",
		old: "if notEjected == 0 || float64(notEjected) < p.opts.threshold*float64(len(l.enabled)) {",
		new: "if notEjected == 0 {",
	},
	{
		name: "calls under way do not count", file: "registry/balance.go", test: "TestTheSlowInstanceGetsFewerCalls",
		old: "float64(calls+1)",
		new: "float64(0*calls+1)",
	},
	{
		name: "a cancelled call does not count in the average", file: "registry/balance.go",
		test: "TestAnInstanceThatWasSlowGetsCallsAgain",
		old:  "		m.addLatency(now, time.Duration(length))\n", new: "		_ = now\n",
	},
	{
		name: "latency does not count", file: "registry/balance.go", test: "TestTheSlowInstanceGetsFewerCalls",
		old: "max(1, average) *",
		new: "max(1, 0*average) *",
	},
	{
		name: "an instance that was slow gets no calls for good", file: "registry/balance.go",
		test: "TestAnInstanceThatWasSlowGetsCallsAgain",
		old:  "		average *= timeWeight(age)\n", new: "		average *= 1\n",
	},
	{
		name: "a slow call counts as much after a pause", file: "registry/balance.go",
		test: "TestAnInstanceThatWasSlowGetsCallsAgain",
		old:  "		latestShare = 1 - (1-latestCallShare)*timeWeight(age)\n",
		new:  "		latestShare = 1 - (1 - latestCallShare)\n",
	},
	{
		name: "the average counts less while calls do not end", file: "registry/balance.go",
		test: "TestAnInstanceThatWasSlowGetsCallsAgain",
		old:  "	case calls == 0:\n", new: "	case average != 0:\n",
	},
	{
		name: "an instance that has not answered yet gets all calls", file: "registry/balance.go",
		test: "TestAnInstanceThatWasSlowGetsCallsAgain",
		old:  "		average = float64(age)\n", new: "		average = 0 * float64(age)\n",
	},
	{
		name: "a list of a file is the last one", file: "registry/pool.go", test: "TestAPoolStartsFromItsFile",
		old: "	if l == nil || l.fromFile {",
		new: "	if l == nil {",
	},
	{
		name: "the file keeps its first list", file: "registry/file.go", test: "TestAPoolStartsFromItsFile",
		old: "	if bytes.Equal(data, p.stored) {",
		new: "	if bytes.Equal(data, p.stored) || p.stored != nil {",
	},
	{
		name: "pools of several services share a file", file: "registry/pool.go", test: "TestAFileForEachService",
		old: "strings.ReplaceAll(p.opts.file, \"{service}\", service)",
		new: "strings.ReplaceAll(p.opts.file, \"{service}\", \"service\")",
	},
	{
		name: "a file is written that Read refuses", file: "internal/lastgood/lastgood.go",
		test: "TestAContentThatIsTooLargeIsNotWritten",
		old:  "		return fmt.Errorf(\"the file would have %d bytes, of at most %d\", len(b), k.MaxBytes)\n",
		new:  "		_ = len(b)\n",
	},
	{
		name: "an empty list of a file counts", file: "registry/file.go", test: "TestAPoolStartsFromItsFile",
		old: "	if len(all) > 0 {",
		new: "	if len(all) >= 0 {",
	},
	{
		name: "each refresh is a change", file: "registry/pool.go", test: "TestChangesAreYieldedOnce",
		old: "!yielded || !reflect.DeepEqual(all, shown)",
		new: "!yielded || reflect.DeepEqual(all, shown) || true",
	},
	{
		name: "Changes goes on after Close", file: "registry/pool.go", test: "TestChangesAreYieldedOnce",
		old: "if !yield(nil, failure.Wrap(\"list instances of\", p.registry.serviceDir(p.service), err)) || closed {",
		new: "if !yield(nil, failure.Wrap(\"list instances of\", p.registry.serviceDir(p.service), err)) {",
	},
	{
		name: "gRPC calls disabled instances", file: "registry/registrygrpc/resolver.go",
		test: "TestGRPCFollowsTheInstances",
		old:  "		if i.Disabled != \"\" {",
		new:  "		if i.Disabled != \"\" && false {",
	},
	{
		name: "gRPC gets no weights", file: "registry/registrygrpc/resolver.go", test: "TestWeightsReachThePolicy",
		old: "weight.EndpointInfo{Weight: uint32(i.Weight)}",
		new: "weight.EndpointInfo{Weight: 1 + 0*uint32(i.Weight)}",
	},
	{
		name: "gRPC keeps the last instance of an empty service", file: "registry/registrygrpc/resolver.go",
		test: "TestGRPCFollowsTheInstances",
		old:  "		if err != nil {\n			conn",
		new: "		if len(all) == 0 && err == nil {\n			continue\n		}\n		if err != " +
			"nil {\n			conn",
	},
	{
		name: "a pool reads a list for each change", file: "registry/list.go",
		test: "TestAThousandInstancesAndAHundredPools",
		old:  "	if !f.due.After(now) {", new: "	if !f.due.After(now) || true {",
	},
	{
		name: "a busy response is a success", file: "registry/transport.go", test: "TestTransportSendsToInstances",
		old: "		body.status = statusError(resp.StatusCode)\n",
		new: "		_ = statusError(resp.StatusCode)\n",
	},
	{
		name: "a call that its caller has cancelled is a success", file: "registry/pool.go",
		test: "TestTransportCountsHowCallsEnd",
		old:  "		c.listed.callCanceled(c.began)\n		return\n", new: "		err = nil\n",
	},
	{
		name: "a request that its caller has cancelled is a failure", file: "registry/transport.go",
		test: "TestTransportCountsHowCallsEnd",
		old:  "	if errors.Is(ctx.Err(), context.Canceled) {",
		new:  "	if errors.Is(ctx.Err(), context.Canceled) && false {",
	},
	{
		name: "a deadline shows nothing of the instance", file: "registry/transport.go",
		test: "TestTransportCountsHowCallsEnd",
		old:  "	if errors.Is(ctx.Err(), context.Canceled) {",
		new:  "	if ctx.Err() != nil || errors.Is(err, context.Canceled) {",
	},
	{
		name: "a body that breaks off is a success", file: "registry/transport.go",
		test: "TestTransportCountsHowCallsEnd",
		old:  "		b.endCall(orCanceled(b.ctx, err))\n", new: "		_ = orCanceled(b.ctx, err)\n",
	},
	{
		name: "a read of a closed body is a failure", file: "registry/transport.go",
		test: "TestCloseOfABodyUnderReadIsNoFailure",
		old:  "	b.endCall(nil)\n	return b.body.Close()\n",
		new:  "	defer b.endCall(nil)\n	return b.body.Close()\n",
	},
	{
		name: "an upgraded connection cannot be written to", file: "registry/transport.go",
		test: "TestTransportPassesAnUpgradedConnection",
		old:  "; ok { // the connection", new: "; ok && false { // the connection",
	},
	{
		name: "Changes yields the error of each read", file: "registry/pool.go", test: "TestChangesYieldsAnErrorOnce",
		old: "(closed || err.Error() != told)", new: "(closed || err.Error() != told || true)",
	},
	{
		name: "ejections are counted with durations only", file: "registry/telemetry.go",
		test: "TestEjectionsAreCountedWithoutDurations",
		old:  "	if ejected {\n", new: "	if ejected && t.calls.Enabled(ctx) {\n",
	},
}
