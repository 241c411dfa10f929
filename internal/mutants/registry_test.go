package mutants

func init() { lists["registry"] = registryMutants }

// registryMutants are the safeguards of package registry.
var registryMutants = []mutant{
	{
		name: "an instance whose node was deleted is not registered again", file: "registry/registration.go", test: "TestAnInstanceIsRegisteredAgain",
		old: "		if errors.Is(err, framework.ErrNoNode) {\n			g.on = nil\n			continue\n		}\n		if err != nil {\n			return err\n		}\n		if st",
		new: "		if errors.Is(err, framework.ErrNoNode) {\n			<-g.ctx.Done()\n			continue\n		}\n		if err != nil {\n			return err\n		}\n		if st",
	},
	{
		name: "a former session's node counts as registered", file: "registry/registration.go",
		old:       "	for g.on != s {\n",
		new:       "	for g.on == nil {\n",
		redundant: "the look at the node that follows sees that it is gone or another session's",
	},
	{
		name: "what others have changed is not registered again", file: "registry/registration.go", test: "TestAnInstanceIsRegisteredAgain",
		old: "	g.data = data\n	g.mu.Lock()",
		new: "	g.mu.Lock()",
	},
	{
		name: "another session's node is deleted", file: "registry/registration.go", test: "TestAnIDOfAnotherSession",
		old: "if g.session != 0 && st.EphemeralOwner == g.session {",
		new: "if st.EphemeralOwner != 0 {",
	},
	{
		name: "an update ends before it is written", file: "registry/registration.go", test: "TestALostReplyRegistersOnce",
		old: "	select {\n	case <-one.done:\n		return failure.Wrap(\"update\"",
		new: "	select {\n	default:\n		return nil\n	case <-one.done:\n		return failure.Wrap(\"update\"",
	},
	{
		name: "a health check enables what an operator has disabled", file: "registry/registration.go", test: "TestAnUnhealthyInstanceIsDisabled",
		old: "		case err == nil && strings.HasPrefix(present, unhealthy), err != nil && present == \"\":\n			_ = g.Update(g.ctx, func(i *Instance) {\n				switch { // an operator may have disabled it meanwhile\n				case err == nil && strings.HasPrefix(i.Disabled, unhealthy):",
		new: "		case err == nil, err != nil && present == \"\":\n			_ = g.Update(g.ctx, func(i *Instance) {\n				switch { // an operator may have disabled it meanwhile\n				case err == nil && (true || strings.HasPrefix(i.Disabled, unhealthy)):",
	},
	{
		name: "Drain does not wait", file: "registry/registration.go", test: "TestDrainIsNoticedBeforeTheEnd",
		old: "recipe.Pause(ctx, g.opts.linger)",
		new: "recipe.Pause(ctx, 0*g.opts.linger)",
	},
	{
		name: "an address of the servers is not checked", file: "registry/instance.go", test: "TestAnInstanceIsCuratorsJSON",
		old: "	return i, i.checkFields()\n",
		new: "	return i, nil\n",
	},
	{
		name: "a Java program's payload is lost", file: "registry/instance.go", test: "TestAnInstanceIsCuratorsJSON",
		old: "	if inner == nil {",
		new: "	if true {",
	},
	{
		name: "a text as payload is replaced", file: "registry/instance.go", test: "TestAnInstanceIsCuratorsJSON",
		old: "	case !own:\n		fields[\"payload\"] = i.Payload\n",
		new: "	case !own && false:\n		fields[\"payload\"] = i.Payload\n",
	},
	{
		name: "a weight that the payload cannot hold is lost", file: "registry/instance.go", test: "TestAnInstanceIsCuratorsJSON",
		old: "	case (i.Weight != 1 || len(i.Metadata) > 0) && !i.ownPayload():\n",
		new: "	case (i.Weight != 1 || len(i.Metadata) > 0) && !i.ownPayload() && false:\n",
	},
	{
		name: "an instance is changed at any version", file: "registry/registry.go", test: "TestTwoChangesAtOnceBothCount",
		old: "framework.SetOp(node, next, st.Version)",
		new: "framework.SetOp(node, next, 0*st.Version+framework.AnyVersion)",
	},
	{
		name: "a change is not told to pools", file: "registry/registry.go", test: "TestAPoolIsEmptyWhenASyncedReadSaysSo",
		old: ", framework.SetOp(dir, nil, framework.AnyVersion))",
		new: ", framework.CheckOp(dir, framework.AnyVersion))",
	},
	{
		name: "the first list is read without a sync", file: "registry/list.go", test: "TestAnEmptyListOfAServerThatLagsIsNotBelieved",
		old: "	sync := true\n",
		new: "	sync := false\n",
	},
	{
		name: "the list is empty while the servers are away", file: "registry/pool.go", test: "TestAPoolKeepsItsListWhileTheServersAreAway",
		old: "	l := p.list.Load()\n	if l == nil ||",
		new: "	l := p.list.Load()\n	if status := p.registry.client.Status(); status.State != framework.Connected {\n		l = &instanceList{}\n	}\n	if l == nil ||",
	},
	{
		name: "changes of other programs are not read", file: "registry/list.go", test: "TestAPoolReadsChangesOfOtherProgramsAgain",
		old: "rand.N(f.refresh))",
		new: "1000*rand.N(f.refresh))",
	},
	{
		name: "what fails is not ejected", file: "registry/balance.go", test: "TestWhatFailsIsEjected",
		old: "return until != 0 && now < until",
		new: "return until != 0 && now < until && false",
	},
	{
		name: "what failed is tried five times again", file: "registry/balance.go", test: "TestWhatFailsIsEjected",
		old: "	} else if m.failures.Add(1) >= o.failures {\n",
		new: "	} else if m.failures.Add(1) >= o.failures {\n		m.failures.Store(0)\n",
	},
	{
		name: "there is no panic threshold", file: "registry/balance.go", test: "TestWhatFailsIsEjected",
		old: "if healthy == 0 || float64(healthy) < p.opts.threshold*float64(len(l.ready)) {",
		new: "if healthy == 0 {",
	},
	{
		name: "calls under way do not count", file: "registry/balance.go", test: "TestTheSlowInstanceGetsFewerCalls",
		old: "float64(m.calls.Load()+1)",
		new: "float64(0*m.calls.Load()+1)",
	},
	{
		name: "latency does not count", file: "registry/balance.go", test: "TestTheSlowInstanceGetsFewerCalls",
		old: "max(1, math.Float64frombits(m.latency.Load()))",
		new: "max(1, 0*math.Float64frombits(m.latency.Load()))",
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
		name: "gRPC calls disabled instances", file: "registry/registrygrpc/resolver.go", test: "TestGRPCFollowsTheInstances",
		old: "		if i.Disabled != \"\" {",
		new: "		if i.Disabled != \"\" && false {",
	},
	{
		name: "gRPC gets no weights", file: "registry/registrygrpc/resolver.go", test: "TestWeightsReachThePolicy",
		old: "weight.EndpointInfo{Weight: uint32(i.Weight)}",
		new: "weight.EndpointInfo{Weight: 1 + 0*uint32(i.Weight)}",
	},
	{
		name: "gRPC keeps the last instance of an empty service", file: "registry/registrygrpc/resolver.go", test: "TestGRPCFollowsTheInstances",
		old: "		if err != nil {\n			conn",
		new: "		if len(all) == 0 && err == nil {\n			continue\n		}\n		if err != nil {\n			conn",
	},
	{
		name: "a pool reads a list for each change", file: "registry/list.go", test: "TestAThousandInstancesAndAHundredPools",
		old: "	if !f.due.After(now) {", new: "	if !f.due.After(now) || true {",
	},
	{
		name: "a busy response is a success", file: "registry/transport.go", test: "TestTransportSendsToInstances",
		old: "		err = statusError(resp.StatusCode)\n",
		new: "		_ = statusError(resp.StatusCode)\n",
	},
}
