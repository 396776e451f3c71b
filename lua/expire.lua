#!lua flags=allow-oom
-- expire: pending, scheduled, retry → archived, for tasks past their deadline or start_before.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  the most tasks to look at
-- returns  { tasks looked at, { ids set aside as malformed }, { for each task archived: id, kind,
--            last_error } }
--
-- Keeps: `deadlines` has exactly the waiting tasks that have one. Works also while a queue is paused.
-- Uses: values, time, keys, types, counters, records, locks, waiters, broken, endings

local ids = redis.call('ZRANGEBYSCORE', key('deadlines'), '-inf', now, 'LIMIT', 0, tonumber(ARGV[2]))
local by_set, strays, malformed, expired = {}, {}, {}, {}
for _, id in ipairs(ids) do
  local set = locate(id)
  local record, problem = nil, nil
  if set == 'pending' or set == 'scheduled' or set == 'retry' then
    record, problem = read_record(id)
    by_set[set] = by_set[set] or {}
    table.insert(by_set[set], id)
  end
  if record then
    expired[#expired + 1] = ending(id, record)
  elseif problem == 'malformed' then
    malformed[#malformed + 1] = id
  else
    strays[#strays + 1] = id
  end
end
check_types('archived', 'hooks')
for set, members in pairs(by_set) do
  bulk('ZREM', key(set), members)
end
bulk('ZREM', key('deadlines'), ids)
for _, id in ipairs(malformed) do
  set_aside(id)
end
tell_waiters(strays)
tell_waiters(malformed)
archive(expired, 'deadline_passed')
count('expired', #expired)
count('malformed', #malformed)
count('missing', #strays)
local archived = {}
for _, task in ipairs(expired) do
  archived[#archived + 1] = task.id
  archived[#archived + 1] = task.kind
  archived[#archived + 1] = task.last_error
end
return { #ids, malformed, archived }
