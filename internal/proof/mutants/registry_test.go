package mutants

// registryMutants are the safeguards of package registry.
var registryMutants = []mutant{
	{
		promise: "An instance is registered again",
		name:    "an instance whose node was deleted is not registered again", file: "registry/registration.go",
		test: "TestAnInstanceIsRegisteredAgain",
		old: "		if errors.Is(err, framework.ErrNoNode) {\n			g.nodeSession = " +
			"nil\n			continue\n		}\n		if err != nil {\n			return " +
			"err\n		}\n		if stat",
		new: "		if errors.Is(err, framework.ErrNoNode) " +
			"{\n			<-g.ctx.Done()\n			continue\n		}\n		if err != nil " +
			"{\n			return err\n		}\n		if stat",
	},
	{
		promise: "An instance is registered again",
		name:    "another session's node is deleted",
		file:    "registry/registration.go", test: "TestAnIDOfAnotherSession",
		old: "if g.lastOwner != 0 && stat.EphemeralOwner == g.lastOwner {",
		new: "if stat.EphemeralOwner != 0 {",
	},
	{
		promise: "An instance is registered again",
		name:    "an update ends before it is written", file: "registry/registration.go",
		test: "TestALostReplyRegistersOnce",
		old:  "	select {\n	case <-one.done:\n		return failure.Wrap(\"update\"",
		new: "	select {\n	default:\n		return nil\n	case <-one.done:\n		return " +
			"failure.Wrap(\"update\"",
	},
	{
		promise: "An instance is registered again",
		name:    "a refused update counts as a refused registration", file: "registry/registration.go",
		test: "TestARefusedUpdateLeavesTheRegistration",
		old:  "		if err != nil && !isRefusal(err) {",
		new:  "		if err != nil && !errors.Is(err, errInvalid) {",
	},
	{
		promise: "A pool keeps its list while the servers are away",
		name:    "the first list is read without a sync", file: "registry/list.go",
		test: "TestAPoolIgnoresAnEmptyListOfALaggingServer",
		old:  "	sync, strict := true, false\n",
		new:  "	sync, strict := false, false\n",
	},
	{
		promise: "A pool keeps its list while the servers are away",
		name:    "an empty list of a lagging leader is taken", file: "registry/list.go",
		test: "TestAPoolIgnoresAnEmptyListOfALaggingLeader",
		old:  "f.lastListHadInstances && len(all) == 0 && !provesEmpty;",
		new:  "f.lastListHadInstances && len(all) == 0 && !provesEmpty && f.dir == \"\";",
	},
	{
		promise: "A pool keeps its list while the servers are away",
		name:    "the list is empty while the servers are away", file: "registry/pool.go",
		test: "TestAPoolKeepsItsListWhileTheServersAreAway",
		old:  "	l := p.list.Load()\n	if l == nil ||",
		new: "	l := p.list.Load()\n	if status := p.registry.client.Status(); status.State != " +
			"framework.Connected {\n		l = &instanceList{}\n	}\n	if l == nil ||",
	},
	{
		promise: "The requests of pools are bounded",
		name:    "a pool reads a list for each change", file: "registry/list.go",
		test: "TestAThousandInstancesAndAHundredPools",
		old:  "	if !f.due.After(now) {", new: "	if !f.due.After(now) || true {",
	},
	{
		promise: "A disabled, unhealthy or draining instance stays registered and",
		name:    "a health check enables what an operator has disabled while it failed", file: "registry/instance.go",
		test: "TestAnUnhealthyInstanceIsDisabled",
		old:  "(i.Disabled == disabledByCheck || !parsePayload(i.Payload).holds(\"disabled\")):",
		new:  "(i.Disabled != \"\" || !parsePayload(i.Payload).holds(\"disabled\")):",
	},
	{
		promise: "A disabled, unhealthy or draining instance stays registered and",
		name:    "Drain does not wait", file: "registry/registration.go", test: "TestDrainIsNoticedBeforeTheEnd",
		old: "recipe.Pause(g.ctx, linger)",
		new: "recipe.Pause(g.ctx, 0*linger)",
	},
	{
		promise: "A disabled, unhealthy or draining instance stays registered and",
		name:    "a Java program's field is overwritten", file: "registry/instance.go",
		test: "TestAJavaProgramsFieldsStay",
		old:  "		if same || !p.holds(name) {\n", new: "		if same {\n",
	},
	{
		promise: "Balancers follow the weights",
		name:    "what fails is not ejected", file: "registry/balance.go", test: "TestAFailingInstanceIsEjected",
		old: "return until != 0 && now < until",
		new: "return until != 0 && now < until && false",
	},
	{
		promise: "Balancers follow the weights",
		name:    "calls under way do not count", file: "registry/balance.go", test: "TestTheSlowInstanceGetsFewerCalls",
		old: "float64(calls+1)",
		new: "float64(0*calls+1)",
	},
	{
		promise: "A pool starts from its file while the servers are away",
		name:    "a list of a file is the last one", file: "registry/pool.go", test: "TestAPoolStartsFromItsFile",
		old: "	if l == nil || l.fromFile {",
		new: "	if l == nil {",
	},
	{
		promise: "gRPC calls the enabled instances",
		name:    "gRPC calls disabled instances", file: "registry/registrygrpc/resolver.go",
		test: "TestGRPCFollowsTheInstances",
		old:  "		if i.Disabled != \"\" {",
		new:  "		if i.Disabled != \"\" && false {",
	},
}
