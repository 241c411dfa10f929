package mutants

func init() { lists["queue_items"] = queueItemsMutants }

// queueItemsMutants are the safeguards of package queue about what belongs to an item.
var queueItemsMutants = []mutant{
	{
		name: "an item that is moved forgets when it was put", file: "queue/envelope.go", test: "TestHeadersAndTheTimeOfThePutStay",
		old: "if err == nil && e.header.Put == 0 {", new: "if false {",
	},
	{
		name: "a consumer changes the headers that are stored", file: "queue/queue.go", test: "TestHeadersAndTheTimeOfThePutStay",
		old: "Headers: maps.Clone(d.env.header.Headers)", new: "Headers: func() map[string]string { _ = maps.Clone[map[string]string]; return d.env.header.Headers }()",
	},
	{
		name: "an acknowledgement whose own operation was refused stays settled", file: "queue/delivery.go", test: "TestAnAckWithOperationsOfOnesOwnIsAllOrNothing",
		old: "	d.settled = nil\n", new: "",
	},
	{
		name: "a delivery that is open again is not watched", file: "queue/delivery.go", test: "TestADeliveryThatIsOpenAgainMakesRoomWhenItIsLost",
		old: "	d.settled = nil\n	d.mu.Unlock()\n	d.settleWhenLost()\n", new: "\td.itemSettled = nil\n\td.mu.Unlock()\n",
	},
	{
		name: "an item that is open again as its queue closes stays claimed", file: "queue/delivery.go", test: "TestAnAckThatIsRefusedAsItsQueueClosesGivesTheItemBack",
		old: "if d.session.ctx.Err() != nil {\n\t\tvar given", new: "if false {\n		var given",
	},
	{
		name: "a refused operation of one put fails others", file: "queue/writer.go", test: "TestARefusedOperationHoldsUpNoOtherPut",
		old: "return w.without(parts, func(p *writeRequest) bool { return p == o.part }, fmt.Errorf(\"%w: %w\", ErrRefused, own)), nil",
		new: "return w.without(parts, func(p *writeRequest) bool { return true }, fmt.Errorf(\"%w: %w\", ErrRefused, own)), nil",
	},
	{
		name: "a strict queue's guard does not know the claim", file: "queue/delivery.go", test: "TestAGuardIsRefusedOnceSomebodyElseHasTheItem",
		old: "framework.CheckOp(d.item, d.version).When", new: "framework.CheckOp(d.item, framework.AnyVersion).When",
	},
	{
		name: "a strict queue's token stays", file: "queue/delivery.go", test: "TestTokensRiseWithEachDeliveryOfAnItem",
		old: "return d.stat.Czxid + int64(d.version)", new: "return d.stat.Czxid",
	},
	{
		name: "an item that was claimed ahead does not expire", file: "queue/queue.go", test: "TestWhatWasClaimedAheadExpiresToo|TestAnItemWhoseTimeIsOverIsADeadLetter",
		old: "if d.env.header.expired(q.core.clock.now()) {", new: "if false {",
	},
	{
		name: "an item whose time is over counts an attempt", file: "queue/expiry.go", test: "TestAnItemWhoseTimeIsOverIsADeadLetter",
		old: "	d.attempt--\n", new: "",
	},
	{
		name: "what was requeued expires again", file: "queue/inspect.go", test: "TestAnItemWhoseTimeIsOverIsADeadLetter",
		old: "e.header.Error, e.header.TTL = 0, 0, \"\", 0", new: "e.header.Error = 0, 0, \"\"",
	},
	{
		name: "dead letters are removed before their time", file: "queue/expiry.go", test: "TestOldDeadLettersAreRemoved",
		old: "Sub(sh.q.clock.now()); wait > 0 {", new: "Sub(sh.q.clock.now()); false {",
	},
	{
		name: "a producer does not hear of another capacity", file: "queue/capacity.go", test: "TestACapacityIsChangedWhileTheQueueIsUsed",
		old: "	if err := q.learnFrom(record); err != nil {\n		return err\n	}\n", new: "	_ = record\n",
	},
	{
		name: "a change is refused to who was made with the old value", file: "queue/engine.go", test: "TestACapacityIsChangedWhileTheQueueIsUsed",
		old: "		given.Capacity, given.Dedup = 0, 0\n", new: "",
	},
	{
		name: "a lower capacity leaves producers their places", file: "queue/change.go", test: "TestAfterALowerCapacityNothingIsPutUntilThereIsRoom",
		old: "	return q.takeBackPlaces(ctx, s, n)\n", new: "	_ = q.takeBackPlaces\n	return nil\n",
	},
	{
		name: "who waits for room is not woken by more of it", file: "queue/change.go", test: "TestACapacityIsChangedWhileTheQueueIsUsed",
		old: "encodeIn(in+1, line), st.Version),\n			framework.SetOp(q.below(outNode), nil, framework.AnyVersion)}", new: "encodeIn(in, line), st.Version)}",
	},
	{
		name: "a producer forgets ids as it would have", file: "queue/change.go", test: "TestALongerWindowHoldsForAProducerThatKnewTheShortOne",
		old: "return []framework.Op{framework.SetOp(q.below(idsDir), data, st.Version)}, err", new: "_, _ = data, st\n		return nil, err",
	},
	{
		name: "a batch's headers are not counted", file: "queue/queue.go", test: "TestHeadersAreBounded",
		old: "size += len(payload) + extra", new: "size += len(payload) + 0*extra",
	},
}
