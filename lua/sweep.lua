#!lua flags=allow-oom
-- sweep: completed and archived → gone: what is past its retention, and what the archive has too much.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  the most tasks to look at in each state
-- ARGV[3]  the most tasks the archive keeps
-- ARGV[4]  how long the archive keeps a task, in ms
-- ARGV[5]  for how long a task whose hook is owed is spared, in ms
-- ARGV[6]  how many of the oldest archived tasks to pass over: the spared ones of the calls before
-- returns  { completed tasks removed, archived tasks removed, hooks dropped, tasks spared now,
--            1 when there is more to do }
--
-- Keeps: the archive's caps, exactly, but for tasks whose hook is owed.
-- Uses: values, time, keys, types, counters

local limit, cap, age, spare = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local passed_over = tonumber(ARGV[6])

local done = redis.call('ZRANGEBYSCORE', key('completed'), '-inf', now, 'LIMIT', 0, limit)

local surplus = redis.call('ZCARD', key('archived')) - cap
local old = redis.call('ZRANGE', key('archived'), passed_over, passed_over + limit - 1, 'WITHSCORES')
local archived, spared, dropped, looked_at = {}, 0, 0, 0
for i = 1, #old, 2 do
  local died = tonumber(old[i + 1])
  if passed_over + looked_at >= surplus and died > now - age then
    break
  end
  looked_at = looked_at + 1
  local owed = redis.call('ZSCORE', key('hooks'), old[i])
  if owed and died > now - spare then
    spared = spared + 1
  else
    archived[#archived + 1] = old[i]
    dropped = dropped + (owed and 1 or 0)
  end
end

check_types('hooks')
for set, ids in pairs({ completed = done, archived = archived }) do
  if #ids > 0 then
    local records = {}
    for i, id in ipairs(ids) do
      records[i] = record_key(id)
    end
    redis.call('UNLINK', unpack(records))
    bulk('ZREM', key(set), ids)
    bulk('ZREM', key('hooks'), ids)
  end
end
count('swept_completed', #done)
count('swept_archived', #archived)
count('hooks_dropped', dropped)
local more = #done == limit or (looked_at > 0 and looked_at * 2 == #old)
return { #done, #archived, dropped, spared, more and 1 or 0 }
