#!lua flags=allow-oom
-- complete: active → gone.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2…] for each task: id, lease holder (`number@server`)
-- returns  for each task 1 (done), 0 (there is no such lease) or -1 (another lease lives)
--
-- Keeps: only the holder of the current lease settles. No record is read; deleting them all in one
-- command is the first write, so that a slot under migration refuses before anything has changed.

local ids = {}
for i = 2, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
end
local leases = redis.call('HMGET', LEASES, unpack(ids))

local answers, done, records, seen, stale = {}, {}, {}, {}, 0
for i, id in ipairs(ids) do
  local holder = ARGV[1 + 2 * i] .. ' '
  if not leases[i] or seen[id] then
    answers[i] = GONE
  elseif string.sub(leases[i], 1, #holder) ~= holder then
    answers[i] = STALE
    stale = stale + 1
  else
    answers[i] = DONE
    seen[id] = true
    done[#done + 1] = id
    records[#records + 1] = record_key(id)
  end
end

local missing = 0
if #done > 0 then
  missing = #done - redis.call('DEL', unpack(records))
  redis.call('HDEL', LEASES, unpack(done))
  redis.call('ZREM', ACTIVE, unpack(done))
end
count({ processed = #done, stale = stale, missing = missing })
return answers
