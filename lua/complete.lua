#!lua flags=allow-oom
-- complete: active → gone, or → completed for its retention.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2…] for each task: id, lease holder (`number@server`), 1 when its record has a lock or a
--          retention (else 0), the result (empty: none)
-- returns  for each task 1 (done), 0 (there is no such lease) or -1 (another lease lives)
--
-- Keeps: only the holder of the current lease settles. A record is read only where the caller says
-- so, which is safe because no script gives a lock or a retention to an active task. Deleting records
-- in one command is the first write, so that a slot under migration refuses before anything changed.

local ids = {}
for i = 2, #ARGV, 4 do
  ids[#ids + 1] = ARGV[i]
end
local leases = redis.call('HMGET', LEASES, unpack(ids))

local answers, done, records, kept, locks, malformed, seen, stale = {}, {}, {}, {}, {}, {}, {}, 0
for i, id in ipairs(ids) do
  local at = 4 * i - 2
  local holder = ARGV[at + 1] .. ' '
  if not leases[i] or seen[id] then
    answers[i] = GONE
  elseif string.sub(leases[i], 1, #holder) ~= holder then
    answers[i] = STALE
    stale = stale + 1
  else
    answers[i] = DONE
    seen[id] = true
    done[#done + 1] = id
    local record, problem = nil, nil
    if ARGV[at + 2] == '1' then
      record, problem = read_record(id, { 'kind', 'unique', 'retention', 'started_at' })
    end
    if record then
      locks[#locks + 1] = lock_to_free(id, record.unique)
    end
    local retention = record and finite(record.retention) or 0
    if retention > 0 then
      kept[#kept + 1] = {
        id = id, until_ms = now + retention, result = ARGV[at + 3],
        started_at = not record.started_at and string.match(leases[i], '^%S+ (%d+) '),
      }
    elseif problem == 'malformed' then
      malformed[#malformed + 1] = id
    else
      records[#records + 1] = record_key(id)
    end
  end
end

local missing = 0
if #records > 0 then
  missing = #records - redis.call('DEL', unpack(records))
end
if #done > 0 then
  redis.call('HDEL', LEASES, unpack(done))
  redis.call('ZREM', ACTIVE, unpack(done))
end
for _, task in ipairs(kept) do
  local key = record_key(task.id)
  redis.call('HDEL', key, 'cancel', 'lost', 'undecodable', 'last_error', 'last_failed_at')
  redis.call('HSET', key, 'completed_at', int(now))
  if task.started_at then
    redis.call('HSET', key, 'started_at', task.started_at)
  end
  if task.result ~= '' then
    redis.call('HSET', key, 'result', task.result)
  end
  redis.call('ZADD', COMPLETED, int(task.until_ms), task.id)
end
if #locks > 0 then
  redis.call('DEL', unpack(locks))
end
remove_broken(ACTIVE, {}, malformed)
tell_waiters(done)
count({ processed = #done, stale = stale, missing = missing })
return answers
