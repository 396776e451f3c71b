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

local expiry = int(now + tonumber(ARGV[2]))
local ids = {}
for i = 3, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
end
local leases = redis.call('HMGET', LEASES, unpack(ids))

local answers, scores, stale = {}, {}, 0
for i, id in ipairs(ids) do
  local holder = ARGV[2 + 2 * i] .. ' '
  if not leases[i] then
    answers[i] = GONE
  elseif string.sub(leases[i], 1, #holder) ~= holder then
    answers[i] = STALE
    stale = stale + 1
  else
    answers[i] = DONE
    scores[#scores + 1] = expiry
    scores[#scores + 1] = id
  end
end
if #scores > 0 then
  redis.call('ZADD', ACTIVE, 'XX', unpack(scores))
end
for i, id in ipairs(ids) do
  if answers[i] == DONE then
    local cancel = redis.pcall('HGET', record_key(id), 'cancel')
    if type(cancel) == 'string' then
      answers[i] = 2
    end
  end
end
count({ stale = stale })
return answers
