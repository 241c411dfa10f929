package redislock

import "github.com/redis/go-redis/v9"

// A lock's keys, in the order in which all scripts get them.
func keysOf(name string) []string {
	return []string{name, "{" + name + "}:token", "{" + name + "}:readers", "{" + name + "}:writer",
		"{" + name + "}:line", "{" + name + "}:stays", "{" + name + "}:arrivals"}
}

// channelOf is the channel of a lock's releases. A message is the first owner in the line, or
// empty without a line: then any waiter may try.
func channelOf(name string) string { return "{" + name + "}:released" }

// An acquisition's arguments are: owner, expiry in ms, whether it waits (1) or only tries (0). It
// returns {1, token}, or {0, ms until the lock may be free}, which is -1 if that is not known. It
// may be sent twice: the second time it returns the same.
//
// The server's clock measures the readers' expiries, as it does those of keys.
const (
	readClock = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`
	// forgetExpired removes readers whose expiry is over. It writes only if there are readers: a server
	// that is full checks the first write of a script only.
	forgetExpired = `
if redis.call('EXISTS', KEYS[3]) == 1 then
	redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
end
`
	refuseWhileHeld = `
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] then
	return {1, tonumber(redis.call('GET', KEYS[2])) or 0}
end
if owner then
	return {0, redis.call('PTTL', KEYS[1])}
end
`
	refuseWhileRead = forgetExpired + `
local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')
if last[2] then
	if ARGV[3] == '1' then
		redis.call('SET', KEYS[4], ARGV[1], 'PX', ARGV[2])
	end
	return {0, last[2] - now}
end
`
	grantExclusive = `
local token = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if redis.call('GET', KEYS[4]) == ARGV[1] then
	redis.call('DEL', KEYS[4])
end
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
	// tellNext publishes the first owner in the line.
	tellNext = `
redis.call('PUBLISH', ARGV[2], redis.call('ZRANGE', KEYS[5], 0, 0)[1] or '')
`
)

var (
	acquireExclusive = redis.NewScript(refuseWhileHeld + readClock + refuseWhileRead + grantExclusive)

	acquireInOrder = redis.NewScript(readClock + joinLine + refuseWhileHeld + refuseWhileRead + refuseOutOfTurn +
		leaveLine + grantExclusive)

	acquireShared = redis.NewScript(readClock + forgetExpired + `
if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then
	for _, key in ipairs({KEYS[1], KEYS[4]}) do
		if redis.call('EXISTS', key) == 1 then
			return {0, redis.call('PTTL', key)}
		end
	end
end
redis.call('ZADD', KEYS[3], now + ARGV[2], ARGV[1])
if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[2]) then
	redis.call('PEXPIRE', KEYS[3], ARGV[2])
end
return {1, tonumber(redis.call('GET', KEYS[2])) or 0}
`)

	// The arguments of a renewal are owner and expiry. It returns 1, or 0 if the lock is not the
	// owner's any more.
	renewExclusive = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
	return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)
	renewShared = redis.NewScript(readClock + `
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

	// The arguments of a release are owner and channel. It gives back what the owner has, also its
	// place in the line and its intention to write.
	release = redis.NewScript(leaveLine + `
local had = redis.call('ZREM', KEYS[3], ARGV[1])
for _, key in ipairs({KEYS[1], KEYS[4]}) do
	if redis.call('GET', key) == ARGV[1] then
		had = had + redis.call('DEL', key)
	end
end
` + tellNext + `
return had
`)
)
