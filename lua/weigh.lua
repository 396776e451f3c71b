#!lua flags=no-writes
-- weigh: how many tasks a queue has, and about how much memory those take that have ended and are kept.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  how many of the oldest and how many of the newest are weighed
-- returns  { tasks that have not ended, archived tasks, their bytes, completed tasks, their bytes }
--
-- Keeps: reads only.
-- Uses: keys, sizes

local limit = tonumber(ARGV[2])

-- How many tasks are in a set, and how many bytes they would have if all were like those at its ends.
local function weigh(set)
  local tasks = redis.call('ZCARD', key(set))
  local ids = redis.call('ZRANGE', key(set), 0, limit - 1)
  local newest = redis.call('ZRANGE', key(set), math.max(-limit, #ids - tasks), -1)
  for _, id in ipairs(tasks > #ids and newest or {}) do
    ids[#ids + 1] = id
  end
  local bytes = 0
  for _, id in ipairs(ids) do
    bytes = bytes + size_of(id)
  end
  return tasks, #ids > 0 and math.ceil(bytes * tasks / #ids) or 0
end

local waiting = 0
for _, set in ipairs({ 'pending', 'active', 'scheduled', 'retry' }) do
  waiting = waiting + redis.call('ZCARD', key(set))
end
local archived, archived_bytes = weigh('archived')
local completed, completed_bytes = weigh('completed')
return { waiting, archived, archived_bytes, completed, completed_bytes }
