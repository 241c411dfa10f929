package sim

// mutantList lists the code's safeguards, and the code without each.
var mutantList = []mutant{
	{
		name: "the proof of life never lapses", file: "framework/session.go", recipes: "mutex", rule: "exclusion",
		old: "lapsed := s.lease.until != 0 && now >= s.lease.until", new: "lapsed := false && now >= s.sessionLease.until",
	},
	{
		name: "the lease has no margin", file: "framework/lease.go", recipes: "mutex", rule: "exclusion",
		old: "return 50*time.Millisecond + timeout/50", new: "return 0 * timeout",
	},
	{
		name: "the lease is counted from the answer", file: "framework/lease.go", recipes: "mutex", rule: "exclusion",
		old: "l.until = max(l.until, from+l.timeout-clockMargin(l.timeout))", new: "l.until = max(l.until, from+l.timeout+l.timeout/4)",
	},
	{
		name: "whose node it is does not matter", file: "framework/protected.go", recipes: "claim", rule: "exclusion",
		old: "		case st.EphemeralOwner != p.s.ID() && p.exact:\n			return nil, ErrNodeExists\n		case st.EphemeralOwner != p.s.ID():",
		new: "		case false:",
	},
	{
		name: "a create whose reply was lost is not looked up", file: "framework/protected.go", recipes: "mutex", rule: anyRule,
		old: "\t\tfound, err := p.findByUUID()\n", new: "		var found []Created\n		var err error = errNotCreated\n",
	},
	{
		name: "a create that was given up is not undone", file: "framework/protected.go", recipes: "mutex,rwlock", rule: anyRule,
		old: "	if len(p.created) == 0 {\n		return\n	}", new: "	if true {\n		return\n	}",
	},
	{
		name: "a claim is deleted whoever has it", file: "framework/deletions.go", recipes: "claim", rule: "exclusion",
		old: "o.err == nil && o.v.stat.Czxid == d.own.Zxid", new: "o.err == nil && o.v.stat.Czxid != 0",
	},
	{
		name: "numbers do not wrap", file: "internal/waitline/position.go", recipes: "mutex", rule: anyRule,
		old: "return p.Seq-q.Seq < 0", new: "return p.Seq < q.Seq",
	},
	{
		name: "tokens fall", file: "locks/lock.go", recipes: "mutex", rule: "order",
		old: "l.line.Wait(ctx, s, l.data(ctx))\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\treturn l.newLeaseInLine(ctx, c, c.Node().Zxid)",
		new: "l.line.Wait(ctx, s, l.data(ctx))\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\treturn l.newLeaseInLine(ctx, c, -c.Node().Zxid)",
	},
	{
		name: "a guard checks nothing", file: "locks/lease.go", recipes: "mutex,rwlock", rule: "guarded writes",
		old: "return framework.CheckOp(cmp.Or(l.fence, l.node), framework.AnyVersion).When(l.Err)", new: `return framework.CheckOp(cmp.Or("/", l.fence), framework.AnyVersion)`,
	},
	{
		name: "readers wait for nobody", file: "internal/waitline/position.go", recipes: "rwlock", rule: "exclusion",
		old: "!(p.Kind.IsShared() && q.Kind.IsShared())", new: "!q.Kind.IsShared()",
	},
	{
		name: "a writer's place is not looked at again", file: "internal/waitline/line.go", recipes: "rwlock", rule: "exclusion",
		old: "return p.Kind.mayBeDowngraded() && !c.local.position.Kind.IsShared()", new: "return false",
	},
	{
		name: "the next in the row is let in before", file: "internal/waitline/localwaiters.go", recipes: "mutex", rule: anyRule,
		old: "\tcase w.granted:\n\t\treturn granted", new: "\tcase w.granted || w.prev != nil && w.prev.granted:\n\t\treturn granted",
	},
	{
		name: "permits are taken without looking at their number", file: "locks/semaphore.go", recipes: "semaphore", rule: "permits",
		old: "framework.CheckOp(s.limit.node, p.version)", new: "framework.CheckOp(s.limit.node, 0*p.version+framework.AnyVersion)",
	},
	{
		name: "permits are taken without room", file: "locks/semaphore.go", recipes: "semaphore", rule: "permits",
		old: "	if len(names)+n <= p.Permits {\n		return p, true, nil", new: "	if len(names) <= p.Permits {\n		return p, true, nil",
	},
	{
		name: "the taker stays in line", file: "locks/semaphore.go", recipes: "semaphore", rule: anyRule,
		old: "framework.DeleteOp(c.Node().Path, framework.AnyVersion)", new: "framework.CheckOp(c.Node().Path, framework.AnyVersion)",
	},
	{
		name: "a lease on several locks ends a moment after one of them", file: "internal/lifetime/lifetime.go", recipes: "multi", rule: "exclusion",
		old: "	for _, d := range dependents {\n		_ = d.end(cause)\n	}", new: "	_ = dependents",
	},
	{
		name: "the locks of a multi-lock are asked for in any order", file: "locks/multi.go", recipes: "multi", rule: "progress",
		old: "return cmp.Compare(a.Path(), b.Path())", new: "return cmp.Compare(0, 0*len(a.Path()+b.Path()))",
	},
	{
		name: "a term is counted without its guard", file: "election/termwriter.go", recipes: "election", rule: anyRule,
		old: "results, err := w.client.Multi(ctx, w.guard(), op)", new: "results, err := w.client.Multi(ctx, framework.CheckOp(\"/\", framework.AnyVersion), op)",
	},
	{
		name: "a round begins at any version", file: "barrier/roundwait.go", recipes: "barrier", rule: anyRule,
		old: "framework.SetOp(m.b.path, st.recordData, st.phase)", new: "framework.SetOp(m.b.path, st.recordData, framework.AnyVersion+0*st.phase)",
	},
	{
		name: "a round begins with members that are not there", file: "barrier/roundwait.go", recipes: "barrier", rule: anyRule,
		old: "ops = append(ops, framework.CheckOp(m.b.memberPath(n), framework.AnyVersion))", new: "_ = m.b.memberPath(n)",
	},
	{
		name: "the recoverer returns items whose tickets are there", file: "queue/recoverer.go", recipes: "queue", rule: anyRule,
		old: "if k < in.drawn && in.tickets[k] == \"\" {", new: "if k < in.drawn {",
	},
	{
		name: "a job's state is written at any version", file: "scheduler/statecache.go", recipes: "scheduler", rule: anyRule,
		old: "framework.SetOp(b.node, data, b.version)", new: "framework.SetOp(b.node, data, framework.AnyVersion+0*b.version)",
	},
	{
		name: "a paused job runs its ticks", file: "scheduler/plan.go", recipes: "control", rule: "pause",
		old: "if p.start == nil && p.state.Paused.IsZero() {", new: "if p.start == nil {",
	},
	{
		name: "a member runs more jobs at once than it may", file: "scheduler/slots.go", recipes: "control", rule: "slots",
		old: "if s.most > 0 && s.used >= s.most {", new: "if s.most > 0 && s.used > s.most {",
	},
	{
		name: "an item leaves without its ticket", file: "queue/claimeditem.go", recipes: "lines", rule: anyRule,
		old: "\t\tops = append(ops, framework.DeleteOp(c.ticket, framework.AnyVersion))\n\t}\n\treturn append(ops, framework.DeleteOp(c.node, c.version))",
		new: "\t\tops = append(ops, framework.CheckOp(c.ticket, framework.AnyVersion))\n\t}\n\treturn append(ops, framework.DeleteOp(c.node, c.version))",
	},
	{
		name: "a ticket is not checked before an item of a lane is taken to be nobody's", file: "queue/recoverer.go", recipes: "lines", rule: anyRule,
		old: "if k < in.drawn && in.tickets[k] == \"\" {", new: "if k < in.drawn && (in.tickets[k] == \"\" || in.at.line != r.store.nodes.base) {",
	},
	{
		name: "the recoverer skips the lines of priorities", file: "queue/recoverer.go", recipes: "lines", rule: anyRule,
		old: "\tfor _, l := range lines {\n\t\tsegments, err",
		new: "\tfor _, l := range slices.DeleteFunc(lines, func(l itemLine) bool { _, priority := lanePriority(l.name()); return priority }) {\n\t\tsegments, err",
	},
	{
		name: "an acknowledged item gives no room back", file: "queue/claimeditem.go", recipes: "lines", rule: "bound",
		old: "\tr := c.request(c.leaveOps())\n\tc.endWith(r, finished)", new: "\tr := c.request(c.removeOps())\n\tc.endWith(r, finished)",
	},
	{
		name: "a bound is counted with one place too many", file: "queue/capacity.go", recipes: "lines", rule: "bound",
		old: "return max(0, c.store.record().Capacity-int(int32(c.in-c.out)))", new: "return max(0, c.store.record().Capacity+1-int(int32(c.in-c.out)))",
	},
	{
		name: "a purge leaves what is given back meanwhile", file: "queue/purge.go", recipes: "lines", rule: "purges",
		old: "if err != nil || round > 0 && removed == 0 {", new: "if err != nil || round >= 0 {",
	},
	{
		name: "a purge leaves what is for later", file: "queue/purge.go", recipes: "lines", rule: "purges",
		old: "\t\tk, err := st.purgeDelayed(ctx, s)", new: "\t\tk, err := 0, error(nil)",
	},
	{
		name: "a pause is ignored", file: "queue/pausegate.go", recipes: "lines", rule: "pauses",
		old: "g.set(true)", new: "g.set(false)",
	},
	{
		name: "an attempt of who has died is counted twice", file: "queue/recoverer.go", recipes: "lines", rule: "attempts",
		old: "int(st.Version) + claims - e.header.Unseen", new: "int(st.Version) + 2*claims - e.header.Unseen",
	},
	{
		name: "an attempt of who gives back is counted twice", file: "queue/claimeditem.go", recipes: "lines", rule: "attempts",
		old: "c.session.order.giveBack(c, c.attempt, after, reason, finished)", new: "c.session.order.giveBack(c, c.attempt+1, after, reason, finished)",
	},
	{
		name: "a claim that was refused counts an attempt", file: "queue/strict.go", recipes: "lines", rule: "attempts",
		old: "if !f.claimed && errors.As(err, &tx) {", new: "if false && errors.As(err, &tx) {",
	},
	{
		name: "items for later come too soon", file: "queue/housekeeping.go", recipes: "lines", rule: "delays",
		old: "wait > 0 {\n\t\t\t\treturn wait, nil", new: "wait > 3*time.Second {\n\t\t\t\treturn wait, nil",
	},
	{
		name: "a job that is registered again is taken for the removed one", file: "scheduler/transitions.go", recipes: "jobs", rule: "registration",
		old: "Generation: s.Generation + 1,", new: "Generation: s.Generation,",
	},
	{
		name: "a member goes by its own schedule", file: "scheduler/job.go", recipes: "jobs", rule: "one schedule",
		old: "if state.Spec == j.schedule.String() && state.Zone", new: "if state.Spec != \"\" || state.Zone",
	},
	{
		name: "a successor runs ticks of its predecessor again", file: "scheduler/transitions.go", recipes: "jobs", rule: "at most once",
		old: "since := latestOf(now, s.ticksSeenUntil())", new: "since := now",
	},
	{
		name: "a withdrawn job is run on", file: "scheduler/jobtable.go", recipes: "jobs", rule: "withdrawal",
		old: "\tdelete(t.jobs, j.Name)\n\tj.left.Store(true)\n\tt.releaseLocked(j.local)", new: "\tdelete(t.jobs, j.Name)\n\tt.releaseLocked(j.local)",
	},
	{
		name: "the definition before an update is run on", file: "scheduler/run.go", recipes: "jobs", rule: "definition",
		old: "\t\te.job = latest // it may", new: "\t\t_ = latest // it may",
	},
	{
		name: "a changed schedule forgets the ticks before", file: "scheduler/transitions.go", recipes: "jobs,control", rule: "ticks",
		old: "s.missDueTicks(old, now, why)", new: "_ = old",
	},
	{
		name: "the ensemble's clock holds no tick", file: "scheduler/clock.go", recipes: "scheduler,control", rule: "ahead",
		old: "local.After(most)", new: "local.After(most) && false",
	},
	{
		name: "ticks are counted by the clock, not from the last one", file: "scheduler/state.go", recipes: "control", rule: "at most once",
		old: "latestOf(s.Registered, s.Since, s.Last) }", new: "latestOf(s.Registered, s.Since) }",
	},
}
