package mutants

// redislockMutants are the safeguards of package redislock.
var redislockMutants = []mutant{
	{
		promise: "While one Redis primary keeps its data",
		name:    "a renewal counts from its answer", file: "redislock/hold.go",
		test: "TestARenewalCountsFromItsRequest",
		old:  "h.expiry.extend(sent + c.leaseLength())", new: "h.expiry.extend(c.clock.Now() + c.leaseLength())",
	},
	{
		promise: "While one Redis primary keeps its data",
		name:    "an acquisition counts from its answer", file: "redislock/hold.go",
		test: "TestAnAnswerCountsFromItsRequest",
		old:  "h.expiry.begin(c.clock, g.sent+c.leaseLength(), &h.life)",
		new:  "h.expiry.begin(c.clock, c.clock.Now()+c.leaseLength(), &h.life)",
	},
	{
		promise: "While one Redis primary keeps its data",
		name:    "a release compares no owner", file: "redislock/scripts.go", test: "TestALockThatIsGoneEndsItsLease",
		old: "if owners[1] == ARGV[1] then", new: "if owners[1] then",
	},
	{
		promise: "While one Redis primary keeps its data",
		name:    "a renewal compares no owner", file: "redislock/scripts.go", test: "TestALockThatIsGoneEndsItsLease",
		old: "if redis.call('GET', KEYS[1]) ~= ARGV[1] then\n	return 0",
		new: "if not redis.call('GET', KEYS[1]) then\n	return 0",
	},
	{
		promise: "While one Redis primary keeps its data",
		name:    "the token does not rise", file: "redislock/scripts.go",
		test: "TestGrantsExcludeEachOtherAndTokensRise",
		old:  "local token = redis.call('INCR', KEYS[2])", new: "local token = 1",
	},
	{
		promise: "While one Redis primary keeps its data",
		name:    "an acquisition that is sent again is refused", file: "redislock/scripts.go",
		test: "TestALostAnswerIsNoSecondGrant",
		old:  "	redis.call('PEXPIRE', KEYS[1], ARGV[2])\n	return {1,", new: "	return {0,",
	},
	{
		promise: "While one Redis primary keeps its data",
		name:    "a reader whose expiry is over keeps the lock", file: "redislock/scripts.go",
		test: "TestAReaderThatIsCutOffEndsBeforeTheWriterHolds",
		old:  "redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)", new: "local none",
	},
	{
		promise: "While one Redis primary keeps its data",
		name:    "a renewal that comes late extends a lease that has ended", file: "redislock/hold.go",
		test: "TestAnEndIsFinal",
		old:  "e.over = e.over || e.clock.Now() >= e.until", new: "e.over = e.clock.Now() >= e.until",
	},
	{
		promise: "While one Redis primary keeps its data",
		name:    "a later attempt leaves the key's expiry", file: "redislock/scripts.go",
		test: "TestALeaseOfALaterAttemptEndsBeforeItsKey",
		old:  "\tredis.call('PEXPIRE', KEYS[1], ARGV[2])\n\treturn {1,", new: "\treturn {1,",
	},
	{
		promise: "A call on Redis that has ended leaves nothing",
		name:    "what may have been granted is not given back", file: "redislock/lock.go",
		test: "TestACallThatEndsLeavesNothing",
		old:  "c.unanswered, c.mayHave = answer, true", new: "c.unanswered = answer",
	},
	{
		promise: "A call on Redis that has ended leaves nothing",
		name:    "a call whose context ends waits for go-redis", file: "redislock/lock.go",
		test: "TestACallThatEndsLeavesNothing",
		old:  "if ctx.Done() == nil {", new: "if true {",
	},
	{
		promise: "A call on Redis that has ended leaves nothing",
		name:    "a release that has failed in its caller is not sent again", file: "redislock/hold.go",
		test: "TestACallWithoutAnEndAsksByItself",
		old:  "c.giveBackOnce(releaseContext{r}) == nil {", new: "c.giveBackOnce(releaseContext{r}) != errInvalid {",
	},
	{
		promise: "A call on Redis that has ended leaves nothing",
		name:    "the alarm of the first renewal ends a release", file: "redislock/hold.go",
		test: "TestAReleaseBesideTheFirstRenewal",
		old:  "case e.clock.Now() >= e.nextAt:", new: "case true:",
	},
	{
		promise: "A call on Redis that has ended leaves nothing",
		name:    "the alarm of an end that is over rings again at once", file: "redislock/hold.go",
		test: "TestALongReleaseRingsNoAlarmAgainAndAgain",
		old:  "isOver := e.Err() != nil", new: "isOver := e.over",
	},
	{
		promise: "A call on Redis that has ended leaves nothing",
		name:    "no release is published", file: "redislock/scripts.go",
		test: "TestGrantsExcludeEachOtherAndTokensRise",
		old:  "return redis.call('PUBLISH', ARGV[2] .. string.match(owner, '^%x*'), owner) > 0",
		new:  "return true",
	},
	{
		promise: "A call on Redis that has ended leaves nothing",
		name:    "only one of the waiting readers is called", file: "redislock/scripts.go",
		test: "TestReadersAndAWriter",
		old:  "		readers = true", new: "		return had",
	},
	{
		promise: "A call on Redis that has ended leaves nothing",
		name:    "a waiter to whom nobody listens is called", file: "redislock/scripts.go",
		test: "TestAReleaseCallsOneWaiter",
		old:  "	if call(waits) then", new: "	if call(waits) or true then",
	},
	{
		promise: "A call on Redis that has ended leaves nothing",
		name:    "a waiter that finds a newcomer waits for the next call", file: "redislock/lock.go",
		test: "TestACalledWaiterThatFindsANewcomerTriesAgain",
		old:  "	if refused.soon {\n		return", new: "	if false {\n		return",
	},
	{
		promise: "`WithArrivalOrder` grants in the order",
		name:    "a dead waiter stays in the line", file: "redislock/scripts.go", test: "TestGrantsInArrivalOrder",
		old: "	redis.call('ZREM', KEYS[5], gone)\n", new: "",
	},
	{
		promise: "`WithArrivalOrder` grants in the order",
		name:    "a waiter overtakes the line", file: "redislock/scripts.go", test: "TestGrantsInArrivalOrder",
		old: "if first and first ~= ARGV[1] then", new: "if first and first ~= ARGV[1] and ARGV[3] == '0' then",
	},
}
