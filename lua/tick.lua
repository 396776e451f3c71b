#!lua flags=allow-oom
-- tick: reads the leases that are surely lost; the recoverer then retries or archives them.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  the longest outage in which no server that lives loses a lease, in ms
-- ARGV[3]  for how long Redis is known to have been there since the caller's last look, in ms
-- ARGV[4]  the grace after an outage, in ms
-- ARGV[5]  the clock-skew cutoff: how long past its expiry a lease counts as lost, in ms
-- ARGV[6]  the most leases to return
-- returns  { now in ms, ms of grace left, the next due time in ms or '', 1 when a dead-letter hook is owed
--            now, { ids set aside as malformed }, { id, lease holder, kind, retried, max_retry, lost, policy,
--            … } }, absent fields empty
--
-- Keeps: nobody's lease is taken right after an outage. Each tick leaves a pulse. One that finds
-- the last pulse older than a harmless outage and what its caller vouches for, or in the future, or none
-- beside a lease that would run out in the grace, knows that heartbeats may have been lost too and starts
-- that grace, in which they can come first. A lease whose record is missing is removed.
-- Uses: values, time, keys, types, schema, due, counters, records, locks, waiters, broken, leases

local meta = redis.call('HMGET', key('meta'), 'schema', 'pulse', 'grace_until')
check_schema(meta[1])
local harmless, vouched, grace = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local skew, limit = tonumber(ARGV[5]), tonumber(ARGV[6])
local pulse, grace_until = tonumber(meta[2]), tonumber(meta[3]) or 0
local outage
if pulse then
  outage = now - pulse > harmless + vouched or pulse > now
else
  outage = redis.call('ZCOUNT', key('active'), '-inf', now + grace) > 0
end
if outage then
  grace_until = now + grace
end

local lost, missing, malformed = {}, {}, {}
local ids = {}
if now >= grace_until then
  ids = redis.call('ZRANGEBYSCORE', key('active'), '-inf', now - skew, 'LIMIT', 0, limit)
end
if #ids > 0 then
  local leases = redis.call('HMGET', key('leases'), unpack(ids))
  for i, id in ipairs(ids) do
    local record, problem = read_record(id, { 'kind', 'retried', 'max_retry', 'lost', 'policy' })
    if record then
      lost[#lost + 1] = id
      lost[#lost + 1] = holder_in(leases[i])
      lost[#lost + 1] = record.kind
      lost[#lost + 1] = record.retried or ''
      lost[#lost + 1] = record.max_retry or ''
      lost[#lost + 1] = record.lost or ''
      lost[#lost + 1] = record.policy or ''
    elseif problem == 'missing' then
      missing[#missing + 1] = id
    else
      malformed[#malformed + 1] = id
    end
  end
end

local hook = redis.call('ZRANGE', key('hooks'), 0, 0, 'WITHSCORES')[2]
local due = next_due()
if #malformed > 0 then
  check_types('archived')
end
redis.call('HSET', key('meta'), 'pulse', int(now))
if outage then
  redis.call('HSET', key('meta'), 'grace_until', int(grace_until))
end
remove_broken('active', missing, malformed)
local owed = hook and tonumber(hook) <= now
return { now, math.max(0, grace_until - now), due and int(due) or '', owed and 1 or 0, malformed, lost }
