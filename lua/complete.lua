#!lua flags=allow-oom
-- complete: active → gone, or → completed for its retention unless it is revoked.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2…] for each task: id, lease holder (`number@server`), 1 when its record has a lock or a
--          retention (`revoked` when its handler revoked it; else 0), the result (empty: none)
-- returns  for each task 1 (done), 0 (there is no such lease) or -1 (another lease lives)
--
-- Keeps: only the holder of the current lease settles. A record is read only where the caller says
-- so, which is safe because no script gives a lock or a retention to an active task. A slot under
-- migration may refuse to delete many records in one command: until then every lease is there.
-- Uses: values, time, keys, types, counters, records, locks, waiters, broken, leases

local function read_tasks()
  local tasks, ids = {}, {}
  for at = 2, #ARGV, 4 do
    local id, holder, has_end_effects, result = unpack(ARGV, at, at + 3)
    tasks[#tasks + 1] = {
      holder = holder, has_end_effects = has_end_effects ~= '0', is_revoked = has_end_effects == 'revoked', result = result,
    }
    ids[#ids + 1] = id
  end
  return tasks, ids
end

local tasks, ids = read_tasks()
local leases = redis.call('HMGET', key('leases'), unpack(ids))

local outcomes, done, seen, stale = {}, {}, {}, 0
local records, kept, locks, malformed = {}, {}, {}, {}
for i, id in ipairs(ids) do
  local task, lease = tasks[i], leases[i]
  if not lease or seen[id] then
    outcomes[i] = GONE
  elseif not is_held_by(lease, task.holder) then
    outcomes[i] = STALE
    stale = stale + 1
  else
    outcomes[i] = DONE
    seen[id] = true
    done[#done + 1] = id
    local record, problem = nil, nil
    if task.has_end_effects then
      record, problem = read_record(id, { 'kind', 'unique', 'retention', 'started_at' })
    end
    if record then
      locks[#locks + 1] = lock_to_free(id, record.unique)
    end
    local retention = record and not task.is_revoked and finite(record.retention) or 0
    if retention > 0 then
      kept[#kept + 1] = {
        id = id, until_ms = now + retention, result = task.result,
        started_at = not record.started_at and string.match(lease, '^%S+ (%d+) '),
      }
    elseif problem == 'malformed' then
      malformed[#malformed + 1] = id
    else
      records[#records + 1] = record_key(id)
    end
  end
end

if #kept > 0 then
  check_types('completed')
end
if #malformed > 0 then
  check_types('deadlines', 'archived')
end
if #done > 0 then
  redis.call('ZREM', key('active'), unpack(done))
end
local missing = 0
if #records > 0 then
  missing = #records - redis.call('UNLINK', unpack(records))
end
if #done > 0 then
  redis.call('HDEL', key('leases'), unpack(done))
end
for _, task in ipairs(kept) do
  local record = record_key(task.id)
  redis.call('HDEL', record, 'cancel', 'lost', 'undecodable', 'last_error', 'last_failed_at')
  redis.call('HSET', record, 'completed_at', int(now))
  if task.started_at then
    redis.call('HSET', record, 'started_at', task.started_at)
  end
  if task.result ~= '' then
    redis.call('HSET', record, 'result', task.result)
  end
  redis.call('ZADD', key('completed'), task.until_ms, task.id)
end
if #locks > 0 then
  redis.call('DEL', unpack(locks))
end
if #malformed > 0 then
  remove_broken('active', {}, malformed)
end
tell_waiters(done)
count('processed', #done)
count('stale', stale)
count('missing', missing)
return outcomes
