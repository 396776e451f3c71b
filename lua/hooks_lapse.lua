#!lua flags=allow-oom
-- hooks_lapse: forgets the kinds whose dead-letter hook no live server has any more.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  how long a registration without a time holds from now on, in ms: servers of 0.1 write such
-- returns  the kinds
--
-- Keeps: a registration that a live server renews, also through an outage: it lapses only once somebody has
-- looked at the queue (tick) after its time was over, and not in the grace in which servers come back.
-- Uses: values, time, keys

local meta = redis.call('HGETALL', key('meta'))
local looked_at, grace_until, registered = 0, 0, {}
for i = 1, #meta, 2 do
  local field, value = meta[i], finite(meta[i + 1])
  local kind = string.match(field, '^hook:(.*)$')
  if kind then
    registered[kind] = value or 1
  elseif field == 'pulse' then
    looked_at = value or 0
  elseif field == 'grace_until' then
    grace_until = value or 0
  end
end

local lapsed = {}
for kind, until_ms in pairs(registered) do
  if until_ms == 1 then
    redis.call('HSET', key('meta'), 'hook:' .. kind, int(now + ARGV[2]))
  elseif until_ms < looked_at and now >= grace_until then
    redis.call('HDEL', key('meta'), 'hook:' .. kind)
    lapsed[#lapsed + 1] = kind
  end
end
return lapsed
