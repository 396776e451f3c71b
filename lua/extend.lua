#!lua flags=allow-oom
-- extend: active → active, with a later expiry.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  how long the lease lasts from now, in ms
-- ARGV[3…] for each task: id, lease holder (`number@server`)
-- returns  for each task 1 (extended), 2 (extended, and its cancel was asked for), 0 (there is no such
--          lease) or -1 (another lease lives)
--
-- Keeps: only the holder of the current lease extends it, also one past its expiry that nobody took.
-- Never adds a member to `active`. Records are looked at last and may not make it fail.
-- Uses: values, time, keys, counters, leases

local CANCEL_REQUESTED = 2

local ids, holders = {}, {}
for at = 3, #ARGV, 2 do
  ids[#ids + 1], holders[#holders + 1] = ARGV[at], ARGV[at + 1]
end
local expiry = int(now + tonumber(ARGV[2]))
local leases = redis.call('HMGET', key('leases'), unpack(ids))

local outcomes, expiries, stale = {}, {}, 0
for i, id in ipairs(ids) do
  if not leases[i] then
    outcomes[i] = GONE
  elseif not is_held_by(leases[i], holders[i]) then
    outcomes[i] = STALE
    stale = stale + 1
  else
    outcomes[i] = DONE
    expiries[#expiries + 1] = expiry
    expiries[#expiries + 1] = id
  end
end
if #expiries > 0 then
  redis.call('ZADD', key('active'), 'XX', unpack(expiries))
end
for i, id in ipairs(ids) do
  if outcomes[i] == DONE then
    local cancel = redis.pcall('HGET', record_key(id), 'cancel')
    if type(cancel) == 'string' then
      outcomes[i] = CANCEL_REQUESTED
    end
  end
end
count('stale', stale)
return outcomes
