package redislock

import "github.com/redis/go-redis/v9"

// A lock's keys, in the order in which all scripts get them.
func keysOf(name string) []string {
	return []string{name, "{" + name + "}:token", "{" + name + "}:readers", "{" + name + "}:writer",
		"{" + name + "}:line", "{" + name + "}:stays", "{" + name + "}:arrivals", "{" + name + "}:waiting",
		"{" + name + "}:called"}
}

// script is a script, and its hash as an argument.
type script struct {
	*redis.Script
	hash any
}

func newScript(text string) *script {
	s := redis.NewScript(text)
	return &script{s, s.Hash()}
}

// callsOf begins the names of the channels on which waiters are called. They end with the caller
// part of the owner: see newOwner. A message is the owner that shall try.
func callsOf(name string) string { return "{" + name + "}:calls:" }

// What an acquisition says of the attempts before it.
const (
	firstAttempt = iota
	laterAttempt
	repeatedAttempt // the one after againSoon
)

// againSoon is the answer to a waiter that was called and finds the lock taken by a newcomer: it
// tries once more in a moment, and until then no release calls anybody. So a lock that is wanted
// all the time costs few attempts that are refused.
const againSoon = -2

// An acquisition's arguments are: owner, expiry in ms, whether it waits (1) or only tries (0), for
// how long a waiter in a line counts without a sign of life, in ms, and what it says of the
// attempts before it. It returns {1, token}, or {0, ms until the lock may be free}, which is -1 if
// that is not known, or againSoon. It may be sent twice: the second time it returns the same, and
// the expiry begins again, as the lease's length does.
//
// The server's clock measures the readers' expiries, as it does those of keys.
const (
	readClock = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`
	// forgetExpired removes readers whose expiry is over. It writes only if there are readers: a
	// server that is full checks the first write of a script only.
	forgetExpired = `
if redis.call('EXISTS', KEYS[3]) == 1 then
	redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
end
`
	// waitForCall returns whether a waiter that is refused shall try again soon. Otherwise it waits
	// for a call; a server that is full refuses to note that, and the waiter only tries when time
	// has passed.
	waitForCall = `
local function wait_for_call(tries_soon)
	if ARGV[3] ~= '1' then
		return false
	end
	if redis.call('GET', KEYS[9]) == ARGV[1] then
		if tries_soon then
			return true
		end
		redis.call('DEL', KEYS[9])
	end
	local time = redis.call('TIME')
	redis.pcall('ZADD', KEYS[8], 'NX', time[1] * 1000 + math.floor(time[2] / 1000), ARGV[1])
	if redis.call('PTTL', KEYS[8]) < tonumber(ARGV[2]) then
		redis.call('PEXPIRE', KEYS[8], ARGV[2])
	end
	return false
end
`
	waitNoMore = `
if ARGV[5] ~= '0' then
	redis.call('ZREM', KEYS[8], ARGV[1])
	if redis.call('GET', KEYS[9]) == ARGV[1] then
		redis.call('DEL', KEYS[9])
	end
end
`
	refuseWhileHeld = `
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] then
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
	return {1, tonumber(redis.call('GET', KEYS[2])) or 0}
end
if owner then
	if wait_for_call(ARGV[5] ~= '2') then
		return {0, -2}
	end
	return {0, redis.call('PTTL', KEYS[1])}
end
`
	refuseWhileRead = `
if redis.call('EXISTS', KEYS[3], KEYS[4]) > 0 then
` + readClock + forgetExpired + `
	local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')
	if last[2] then
		if ARGV[3] == '1' then
			redis.call('SET', KEYS[4], ARGV[1], 'PX', ARGV[2])
		end
		wait_for_call(false)
		return {0, last[2] - now}
	end
end
`
	grantExclusive = `
local token = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if ARGV[5] ~= '0' and redis.call('GET', KEYS[4]) == ARGV[1] then
	redis.call('DEL', KEYS[4])
end
` + waitNoMore + `
return {1, token}
`
	// joinLine needs a fourth argument: for how long a waiter counts without a sign of life, in ms.
	joinLine = `
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[6], '-inf', now)) do
	redis.call('ZREM', KEYS[5], gone)
	redis.call('ZREM', KEYS[6], gone)
end
if ARGV[3] == '1' then
	if not redis.call('ZSCORE', KEYS[5], ARGV[1]) then
		redis.call('ZADD', KEYS[5], redis.call('INCR', KEYS[7]), ARGV[1])
	end
	redis.call('ZADD', KEYS[6], now + ARGV[4], ARGV[1])
	redis.call('PEXPIRE', KEYS[5], 2 * ARGV[4])
	redis.call('PEXPIRE', KEYS[6], 2 * ARGV[4])
end
`
	refuseOutOfTurn = `
local first = redis.call('ZRANGE', KEYS[5], 0, 0)[1]
if first and first ~= ARGV[1] then
	return {0, -1}
end
`
	leaveLine = `
redis.call('ZREM', KEYS[5], ARGV[1])
redis.call('ZREM', KEYS[6], ARGV[1])
`
	// callNext calls the first owner in the line. Without a line, and unless somebody was called
	// already or another owner holds, it calls the writer that keeps new readers away, or the one
	// that waits the longest: a writer, or the readers before the next writer. It passes over those
	// to whom nobody listens.
	callNext = `
local function call(owner)
	return redis.call('PUBLISH', ARGV[2] .. string.match(owner, '^%x*'), owner) > 0
end
local first = redis.call('ZRANGE', KEYS[5], 0, 0)[1]
if first then
	call(first)
	return had
end
if redis.call('EXISTS', KEYS[1], KEYS[9]) > 0 then
	return had
end
local readers, writer = false, redis.call('GET', KEYS[4])
while true do
	local waits = writer or redis.call('ZRANGE', KEYS[8], 0, 0)[1]
	writer = false
	local reads = waits and string.match(waits, ':(.)') == 'r'
	if not waits or readers and not reads then
		return had
	end
	redis.call('ZREM', KEYS[8], waits)
	if call(waits) then
		if not reads then
			redis.call('SET', KEYS[9], waits, 'PX', 100)
			return had
		end
		readers = true
	end
end
`
)

var (
	acquireExclusive = newScript(`
if redis.call('EXISTS', KEYS[1], KEYS[3], KEYS[4]) > 0 then
` + waitForCall + refuseWhileHeld + refuseWhileRead + `
end
` + grantExclusive)

	acquireInOrder = newScript(`
local function wait_for_call() end
` + readClock + joinLine + refuseWhileHeld + refuseWhileRead + refuseOutOfTurn + leaveLine + grantExclusive)

	acquireShared = newScript(waitForCall + readClock + forgetExpired + `
if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then
	for _, key in ipairs({KEYS[1], KEYS[4]}) do
		if redis.call('EXISTS', key) == 1 then
			wait_for_call(false)
			return {0, redis.call('PTTL', key)}
		end
	end
end
redis.call('ZADD', KEYS[3], now + ARGV[2], ARGV[1])
if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[2]) then
	redis.call('PEXPIRE', KEYS[3], ARGV[2])
end
` + waitNoMore + `
return {1, tonumber(redis.call('GET', KEYS[2])) or 0}
`)

	// The arguments of a renewal are owner and expiry. It returns 1, or 0 if the lock is not the
	// owner's any more.
	renewExclusive = newScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
	return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)
	renewShared = newScript(readClock + `
local ends = redis.call('ZSCORE', KEYS[3], ARGV[1])
if not ends or tonumber(ends) <= now then
	return 0
end
redis.call('ZADD', KEYS[3], now + ARGV[2], ARGV[1])
if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[2]) then
	redis.call('PEXPIRE', KEYS[3], ARGV[2])
end
return 1
`)

	// The arguments of a release are owner and callsOf. It gives back what the owner has, also its
	// place in the line, its wait for a call and its intention to write. It ends early when nobody
	// waits, and when somebody was called already: the costs of a lock that is wanted all the time
	// are here.
	release = newScript(`
local had, owners = 0, redis.call('MGET', KEYS[1], KEYS[9])
if owners[1] == ARGV[1] then
	had = redis.call('DEL', KEYS[1])
end
if had == 1 and owners[2] and owners[2] ~= ARGV[1] then
	if redis.call('EXISTS', KEYS[3], KEYS[4], KEYS[5]) == 0 then
		return had
	end
elseif redis.call('EXISTS', KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[8], KEYS[9]) == 0 then
	return had
end
if redis.call('EXISTS', KEYS[3], KEYS[4], KEYS[5], KEYS[6]) > 0 then
	had = had + redis.call('ZREM', KEYS[3], ARGV[1])
	if redis.call('GET', KEYS[4]) == ARGV[1] then
		redis.call('DEL', KEYS[4])
	end
` + leaveLine + `
end
redis.call('ZREM', KEYS[8], ARGV[1])
if owners[2] == ARGV[1] then
	redis.call('DEL', KEYS[9])
end
` + callNext)
)
