package sim

// mutantList lists safeguards of the code, one for each rule that the simulation checks, and the
// code without each.
var mutantList = []mutant{
	{
		name: "the proof of life lapses a session timeout late", file: "framework/lease.go", recipes: "mutex",
		rule: "exclusion",
		old:  "return from + l.timeout - clockMargin(l.timeout)", new: "return from + 2*l.timeout",
	},
	{
		name: "a hold is granted on a session that sleeps", file: "framework/session.go", recipes: "sleepers",
		rule: "exclusion",
		old:  "if s.lease.until == 0 || s.setup.clock.Now() >= s.lease.until || ", new: "if ",
	},
	{
		name: "a create whose reply was lost is not looked up", file: "framework/protected.go", recipes: "mutex",
		rule: anyRule,
		old:  "\t\tfound, err := p.findByUUID()\n",
		new:  "		var found []primitives.Created\n		var err error = errNotCreated\n",
	},
	{
		name: "tokens fall", file: "locks/lock.go", recipes: "mutex", rule: "order",
		old: "l.contenderData(ctx), w)\n\tif err != nil {\n\t\treturn nil, " +
			"err\n\t}\n\treturn l.newLeaseInLine(w.Caller, c, c.Node().Zxid)",
		new: "l.contenderData(ctx), w)\n\tif err != nil {\n\t\treturn nil, " +
			"err\n\t}\n\treturn l.newLeaseInLine(w.Caller, c, -c.Node().Zxid)",
	},
	{
		name: "a deadlock is believed before its asks have confirmed it", file: "internal/waitgraph/graph.go",
		recipes: "deadlocks", rule: "no false alarm",
		old: "if a.Seen >= completed || waitsNow && a == me {", new: "if a.Seen >= completed || true {",
	},
	{
		name: "the eldest request of a deadlock fails", file: "internal/waitgraph/graph.go", recipes: "deadlocks",
		rule: "the youngest fails",
		old:  "cmp.Compare(a.number, b.number))\n}\n\nfunc compareBool",
		new:  "cmp.Compare(b.number, a.number))\n}\n\nfunc compareBool",
	},
	{
		name: "nobody confirms a deadlock",
		file: "internal/waitgraph/request.go", recipes: "deadlocks", rule: "progress",
		old: "current.Seen = max(current.Seen, g.completedBy(cycle))",
		new: "current.Seen = max(current.Seen, 0*g.completedBy(cycle))",
	},
	{
		name: "a guard checks nothing", file: "locks/lease.go", recipes: "mutex,rwlock", rule: "guarded writes",
		old: "return primitives.When(framework.CheckOp(cmp.Or(l.guardNode, l.node), framework.AnyVersion), l.Err)",
		new: `return framework.CheckOp(cmp.Or("/", l.guardNode), framework.AnyVersion)`,
	},
	{
		name: "readers wait for nobody", file: "internal/waitline/position.go", recipes: "rwlock", rule: "exclusion",
		old: "!(p.Kind.IsShared() && q.Kind.IsShared())", new: "!q.Kind.IsShared()",
	},
	{
		name: "permits are taken without looking at their number", file: "locks/semaphore.go", recipes: "semaphore",
		rule: "permits",
		old:  "framework.CheckOp(s.limit.node, p.version)",
		new:  "framework.CheckOp(s.limit.node, 0*p.version+framework.AnyVersion)",
	},
	{
		name: "a lease on several locks ends a moment after one of them", file: "internal/lifetime/lifetime.go",
		recipes: "multi", rule: "exclusion",
		old: "	for _, d := range dependents {\n		_ = d.end(cause)\n	}", new: "	_ = dependents",
	},
	{
		name: "the locks of a multi-lock are asked for in any order", file: "locks/multilock.go", recipes: "multi",
		rule: "progress",
		old:  "return cmp.Compare(a.Path(), b.Path())", new: "return cmp.Compare(0, 0*len(a.Path()+b.Path()))",
	},
	{
		name: "a term is counted without its guard", file: "election/termwriter.go", recipes: "election", rule: anyRule,
		old: "results, err := w.client.Multi(ctx, w.guard(), op)",
		new: "results, err := w.client.Multi(ctx, framework.CheckOp(\"/\", framework.AnyVersion), op)",
	},
	{
		name: "a round begins at any version", file: "barrier/roundwait.go", recipes: "barrier", rule: anyRule,
		old: "framework.SetOp(m.b.path, state.recordData, state.phase)",
		new: "framework.SetOp(m.b.path, state.recordData, framework.AnyVersion+0*state.phase)",
	},
	{
		name: "the recoverer returns items whose tickets are there", file: "queue/recoverer.go", recipes: "queue",
		rule: anyRule,
		old:  "if k < in.drawn && in.tickets[k] == \"\" {", new: "if k < in.drawn {",
	},
	{
		name: "a job's state is written at any version", file: "scheduler/statecache.go", recipes: "scheduler",
		rule: anyRule,
		old:  "framework.SetOp(c.node, data, c.version)",
		new:  "framework.SetOp(c.node, data, framework.AnyVersion+0*c.version)",
	},
	{
		name: "a paused job runs its ticks", file: "scheduler/plan.go", recipes: "control", rule: "pause",
		old: "if p.start == nil && p.state.Paused.IsZero() {", new: "if p.start == nil {",
	},
	{
		name: "a member runs more jobs at once than it may", file: "scheduler/slots.go", recipes: "control",
		rule: "slots",
		old:  "if s.most > 0 && s.used >= s.most {", new: "if s.most > 0 && s.used > s.most {",
	},
	{
		name: "an acknowledged item gives no room back", file: "queue/delivery.go", recipes: "lines", rule: "bound",
		old: "\tr := c.newRequest(c.leaveOps())\n\tc.endWith(r, then)",
		new: "\tr := c.newRequest(c.removeOps())\n\tc.endWith(r, then)",
	},
	{
		name: "a purge leaves what is given back meanwhile", file: "queue/purge.go", recipes: "lines", rule: "purges",
		old: "		if err != nil {\n			return n, err\n		}\n		if round > 0 &&",
		new: "		if err != nil || round >= 0 {\n			return n, err\n		}\n		if round > 0 &&",
	},
	{
		name: "a consumer does not look for cancelled items", file: "queue/consumersession.go", recipes: "cancels",
		rule: "cancels",
		old:  "outcome, err := cs.cancels.removeIfMarked(cs.ctx, c.env.Header, c.node, removal)",
		new:  "outcome, err := itemStays, error(nil)\n\t\t_ = removal",
	},
	{
		name: "a pause is ignored", file: "queue/takes.go", recipes: "lines", rule: "pauses",
		old: "g.setPaused(true)", new: "g.setPaused(false)",
	},
	{
		name: "an attempt of who has died is counted twice", file: "queue/recoverer.go", recipes: "lines",
		rule: "attempts",
		old:  "int(stat.Version) + claims - e.Header.Unseen", new: "int(stat.Version) + 2*claims - e.Header.Unseen",
	},
	{
		name: "items for later come too soon", file: "queue/housekeeping.go", recipes: "lines", rule: "delays",
		old: "wait > 0 {\n\t\t\t\treturn wait, nil", new: "wait > 3*time.Second {\n\t\t\t\treturn wait, nil",
	},
	{
		name: "a job that is registered again is taken for the removed one", file: "scheduler/transitions.go",
		recipes: "jobs", rule: "registration",
		old: "Generation: s.Generation + 1,", new: "Generation: s.Generation,",
	},
	{
		name: "a member goes by its own schedule", file: "scheduler/job.go", recipes: "jobs", rule: "one schedule",
		old: "if state.Spec == j.schedule.String() && state.Zone", new: "if state.Spec != \"\" || state.Zone",
	},
	{
		name: "a successor runs ticks of its predecessor again", file: "scheduler/transitions.go", recipes: "jobs",
		rule: "at most once",
		old:  "since := latestOf(now, s.ticksSeenUntil())", new: "since := now",
	},
	{
		name: "the definition before an update is run on", file: "scheduler/run.go", recipes: "jobs",
		rule: "definition",
		old:  "\t\te.job = latest // it may", new: "\t\t_ = latest // it may",
	},
	{
		name: "a changed schedule forgets the ticks before", file: "scheduler/transitions.go", recipes: "jobs,control",
		rule: "ticks",
		old:  "s.missDueTicks(old, now, why)", new: "_ = old",
	},
	{
		name: "the ensemble's clock holds no tick", file: "scheduler/clock.go", recipes: "scheduler,control",
		rule: "ahead",
		old:  "local.After(most)", new: "local.After(most) && false",
	},
	{
		name: "a node that was created anew with the same version is not noticed", file: "framework/follow.go",
		recipes: "config", rule: "newest",
		old: "value.Zxid == n.latest.Zxid)", new: "value.Stat.Version == n.latest.Stat.Version)",
	},
	{
		name: "a followed node is read without a sync", file: "framework/follow.go", recipes: "config",
		rule: "freshness",
		old:  "if sync || reads.isReadDue() {", new: "if sync && false {",
	},
	{
		name: "a lost reply of a value's write is not looked up", file: "config/store.go", recipes: "config",
		rule: "settled",
		old:  "if w.unknown {\n\t\tapplied", new: "if w.unknown && false {\n\t\tapplied",
	},
	{
		name: "a slot's next user begins at the present time", file: "ids/slot.go", recipes: "ids", rule: "unique",
		old: "max(now, o.owned.record.Until, floor, o.opts.epoch)", new: "max(now, floor, o.opts.epoch)",
	},
	{
		name: "changes of members are told in the order of joining", file: "members/view.go", recipes: "members",
		rule: "order",
		old:  "cmp.Or(cmp.Compare(a.Zxid, b.Zxid), cmp.Compare(",
		new:  "cmp.Or(0*cmp.Compare(a.Zxid, b.Zxid), cmp.Compare(",
	},
	{
		name: "a drain is acknowledged when it begins", file: "members/cordonhandler.go", recipes: "members",
		rule: "acknowledged",
		old:  "	ctx, w.cancel = context.WithCancelCause(ctx)\n",
		new: "	ctx, w.cancel = context.WithCancelCause(ctx)\n	h.recordAnswer(c.request, Answer{State: " +
			"Drained}, false)\n",
	},
	{
		name: "a step is recorded without the executor's guard", file: "workflow/step.go", recipes: "ledger",
		rule: "zombie",
		old:  "s.Multi(ctx, append(guardsOf(r.executor), framework.CreateOp(node,",
		new: "s.Multi(ctx, append([]framework.Op{framework.CheckOp(\"/\", framework.AnyVersion)}, " +
			"framework.CreateOp(node,",
	},
	{
		name: "a record without an answer is not looked for", file: "workflow/step.go", recipes: "ledger",
		rule: "repeated",
		old:  "	if before == uncertain {", new: "	if before == uncertain && false {",
	},
	{
		name: "an idempotency key has no UUID", file: "workflow/step.go", recipes: "runs", rule: "keys",
		old: "key := Key{ID: r.uuid + \"-\" + name,", new: "key := Key{ID: \"-\" + name,",
	},
	{
		name: "a step is recorded before its effect", file: "workflow/step.go", recipes: "runs", rule: "recorded",
		old: "	record, err := r.runAttempts(ctx, cfg, name, fn)\n",
		new: "	if _, err := r.writeRecord(ctx, name, stepRecord{Result: []byte(`\"\"`), Token: " +
			"r.executor.Token(), By: r.recorderID}); err != nil {\n		return err\n	}\n	record, err := " +
			"r.runAttempts(ctx, cfg, name, fn)\n",
	},
	{
		name: "a former item of the run lets an executor in", file: "workflow/execute.go", recipes: "runs",
		rule: "exclusion",
		old:  "(r.UUID != item.UUID || r.ItemNumber != item.ItemNumber)", new: "r.UUID != item.UUID",
	},
	{
		name: "a run waits for a signal that came meanwhile", file: "workflow/lifecycle.go", recipes: "runs",
		rule: "progress",
		old: "		case isSignal == (n.Err == nil): // the signal has come, or the child is " +
			"gone\n			return nil, errChanged\n		case isSignal: // no",
		new: "		case isSignal: // no",
	},
	{
		name: "a run may be started again with another input", file: "workflow/start.go", recipes: "runs",
		rule: "start",
		old:  "stored.Workflow != r.Workflow || !bytes.Equal(stored.Input, r.Input)",
		new:  "stored.Workflow != r.Workflow || bytes.Equal(nil, []byte{0})",
	},
	{
		name: "the end of a wait for a signal is not settled", file: "workflow/waits.go", recipes: "runs",
		rule: "signals",
		old:  "signal, err = r.timeOutSignal(ctx, next)", new: "signal.TimedOut = true",
	},
	{
		name: "a sleep ends too early", file: "workflow/runrecord.go", recipes: "runs", rule: "sleeps",
		old: "time.Duration(r.Millis+1) * time.Millisecond", new: "time.Duration(r.Millis-1) * time.Millisecond",
	},
	{
		name: "a finished run is removed too early", file: "workflow/sweep.go", recipes: "runs", rule: "retention",
		old: "		case r.stat.Mtime.After(ended.due), ",
		new: "		case r.stat.Mtime.After(ended.due.Add(time.Minute)), ",
	},
	{
		name: "the end of a run is not noted for its removal", file: "workflow/lifecycle.go", recipes: "runs",
		rule: "leftovers",
		old:  "ops: []framework.Op{write, framework.CreateOp(ended, nil, framework.Persistent)}}",
		new:  "ops: []framework.Op{write, framework.CheckOp(\"/\"+ended[:0], framework.AnyVersion)}}",
	},
	{
		name: "a pool's first list is read without a sync", file: "registry/list.go", recipes: "registry",
		rule: "freshness",
		old:  "	sync, strict := true, false\n", new: "	sync, strict := false, false\n",
	},
	{
		name: "an instance whose node was deleted is not registered again", file: "registry/registration.go",
		recipes: "registry", rule: "listed",
		old: "		if errors.Is(err, framework.ErrNoNode) {\n			g.nodeSession = " +
			"nil\n			continue\n		}\n		if err != nil {\n			return " +
			"err\n		}\n		if stat",
		new: "		if errors.Is(err, framework.ErrNoNode) {\n			select {\n			case " +
			"<-g.ctx.Done():\n			case " +
			"<-s.Context().Done():\n			}\n			continue\n		}\n		if err != nil " +
			"{\n			return err\n		}\n		if stat",
	},
	{
		name: "a pool is empty while the servers are away", file: "registry/pool.go", recipes: "registry",
		rule: "empty",
		old:  "	l := p.list.Load()\n	if l == nil ||",
		new: "	l := p.list.Load()\n	if status := p.registry.client.Status(); status.State != " +
			"framework.Connected {\n		l = &instanceList{}\n	}\n	if l == nil ||",
	},
	{
		name: "an instance is registered again after a long pause", file: "registry/registration.go",
		recipes: "registry", rule: "listed in time",
		old: "	for g.nodeSession != s {\n",
		new: "	if g.nodeSession != s && g.lastOwner != 0 {\n		if err := waitFor(g.ctx, s, 3*s.Timeout()); " +
			"err != nil {\n			return err\n		}\n	}\n	for g.nodeSession != s {\n",
	},
	{
		name: "sessions live longer than they should", file: "framework/zookeeper.go", recipes: "registry",
		rule: "gone in time",
		old:  "zk.Connect(cfg.Servers, cfg.SessionTimeout,", new: "zk.Connect(cfg.Servers, 3*cfg.SessionTimeout,",
	},
	{
		name: "a tree's nodes are read once", file: "config/treereader.go", recipes: "tree", rule: "moment",
		old: "n.fired.Store(true)\n				same = false",
		new: "n.fired.Store(true)\n				same = same && true",
	},
}
