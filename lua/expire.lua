#!lua flags=allow-oom
-- expire: pending, scheduled, retry → archived, for tasks past their deadline or start_before.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  the most tasks to look at
-- returns  { tasks looked at, { ids set aside as malformed }, { for each task archived: id, kind } }
--
-- Keeps: `deadlines` has exactly the waiting tasks that have one. Works also while a queue is paused.

local ids = redis.call('ZRANGEBYSCORE', DEADLINES, '-inf', int(now), 'LIMIT', 0, tonumber(ARGV[2]))
local from, strays, malformed, expired, archived = {}, {}, {}, {}, {}
for _, id in ipairs(ids) do
  local set = locate(id)
  local record, problem = nil, nil
  if set == PENDING or set == SCHEDULED or set == RETRY then
    record, problem = read_record(id)
    from[set] = from[set] or {}
    table.insert(from[set], id)
  end
  if record then
    expired[#expired + 1] = ending(id, record)
    archived[#archived + 1] = id
    archived[#archived + 1] = record.kind
  elseif problem == 'malformed' then
    malformed[#malformed + 1] = id
  else
    strays[#strays + 1] = id
  end
end
for set, members in pairs(from) do
  bulk('ZREM', set, members)
end
bulk('ZREM', DEADLINES, ids)
for _, id in ipairs(malformed) do
  set_aside(id)
end
bury(expired, 'deadline_passed')
count({ expired = #expired, malformed = #malformed, missing = #strays })
return { #ids, malformed, archived }
