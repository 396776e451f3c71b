#!lua
-- enqueue: new → pending, for tasks without options (with any: enqueue_with_options). It is called most,
-- and half of its time is Lua, so it is short and uses little.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2…] for each task: id, the number of values that follow, its record's fields and values
-- returns  for each task 1 (new) or 0 (its id exists)
--
-- Keeps: a record exists if and only if its id is in one state set. Not allowed when Redis is out of
-- memory: then nothing is written at all.
-- Uses: time, keys, schema, wake, counters

-- Of each task: its id, where its record's fields begin in ARGV, its record's key.
local ids, firsts, records = {}, {}, {}
local at = 2
while at <= #ARGV do
  local n = #ids + 1
  ids[n] = ARGV[at]
  firsts[n] = at + 2
  records[n] = record_key(ARGV[at])
  at = at + 2 + ARGV[at + 1]
end
-- Two values (an id and a length) are between the fields of two tasks.
firsts[#ids + 1] = at + 2

local schema = redis.call('HMGET', key('meta'), 'schema')[1]
check_schema(schema)
-- One look for the common case: none of the ids exists.
local some_exist = redis.call('EXISTS', unpack(records)) > 0
local replies, seen, pending = {}, {}, {}
for i, id in ipairs(ids) do
  if seen[id] or (some_exist and redis.call('EXISTS', records[i]) == 1) then
    replies[i] = 0
  else
    replies[i] = 1
    seen[id] = true
    pending[#pending + 1] = now_us + i
    pending[#pending + 1] = id
  end
end

-- The state set first: only its key can be of another type, and then nothing is written.
if #pending > 0 then
  redis.call('ZADD', key('pending'), unpack(pending))
  wake()
end
for i, record in ipairs(records) do
  if replies[i] == 1 then
    local last = firsts[i + 1] - 3
    -- Thousands of small headers are more than `unpack` takes at once.
    for first = firsts[i], last, 1000 do
      redis.call('HSET', record, unpack(ARGV, first, math.min(first + 999, last)))
    end
  end
end
if not schema then
  redis.call('HSET', key('meta'), 'schema', 1)
end
count('enqueued', #pending / 2)
count('duplicates', #ids - #pending / 2)
return replies
