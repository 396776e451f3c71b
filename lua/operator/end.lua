#!lua flags=allow-oom
-- end: any state → archived or gone, because an operator or a producer says so.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  id
-- ARGV[3]  `archive`, `delete`, or `decide`: an active task's handler decides, a waiting one is
--          archived
-- ARGV[4]  1 when it is a cancel: its hook is owed (else 0)
-- ARGV[5]  the channel's name up to the server's id, on which servers hear of cancels
-- ARGV[6]  the lease holder if its server is dead, so that an active task is taken over (else empty)
-- returns  { outcome, lease holder }: `done`, `missing`, `requested` (it runs, and its server was told),
--          `already` (it is archived), `completed` or `superseded` (dropped: a newer task took its place)
--
-- Keeps: a running task is never taken from a live server, nor right after an outage, when a live one
-- may not be seen; its record says what was asked, for when the message is lost. A weaker wish does not
-- undo a stronger one of before. What has ended is kept unless an operator deletes it.
-- Uses: values, time, keys, types, counters, records, locks, waiters, broken, endings, erase

local id, what, is_cancel, channel, dead = ARGV[2], ARGV[3], ARGV[4] == '1', ARGV[5], ARGV[6]
local set = locate(id)
local record, problem = nil, nil
if set then
  record, problem = read_record(id)
end
if not set or problem == 'missing' then
  return { 'missing', '' }
end
if (set == 'archived' or set == 'completed') and (what ~= 'delete' or is_cancel) then
  return { set == 'archived' and 'already' or 'completed', '' }
end
check_types('deadlines', 'leases', 'archived', 'hooks')
if not record and what ~= 'delete' then
  remove_broken(set, {}, { id })
  return { 'done', '' }
end
local task
if record then
  task = ending(id, record)
else
  local unique = redis.pcall('HGET', record_key(id), 'unique')
  task = { id = id, lock = type(unique) == 'string' and lock_to_free(id, unique) or nil }
end
local wish = what == 'archive' and not is_cancel and 'operator' or what
local STRENGTH = { decide = 1, archive = 2, operator = 2, delete = 3 }
local before = record and record.cancel
if STRENGTH[wish] <= (STRENGTH[before] or 0) then
  wish = before
end
local lease = record and set == 'active' and redis.call('HGET', key('leases'), id)
local in_grace = now < (finite(redis.call('HGET', key('meta'), 'grace_until')) or 0)
if lease and (in_grace or string.match(lease, '^%S+') ~= dead) then
  local number, server = string.match(lease, '^(%d+)@(%S+)')
  redis.call('HSET', record_key(id), 'cancel', wish)
  -- With a dead holder it is the second call for one wish.
  count('cancels_requested', dead == '' and 1 or 0)
  if number then
    -- Where the user may not publish, the server hears of it by its next heartbeat.
    redis.pcall('PUBLISH', channel .. server, number .. ' ' .. id)
  end
  return { 'requested', (number or '') .. '@' .. (server or '') }
end

redis.call('ZREM', key(set), id)
redis.call('ZREM', key('deadlines'), id)
redis.call('HDEL', key('leases'), id)
if wish == 'delete' then
  erase({ task }, 'deleted')
elseif record.superseded then
  erase({ task }, 'superseded')
  return { 'superseded', '' }
else
  archive({ task }, wish == 'operator' and 'operator' or 'cancelled')
end
return { 'done', '' }
