#!lua
-- run: scheduled, retry, archived → pending, now.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  id
-- returns  { answer, holder }: `done`, `missing`, `active`, `completed`, `already` (it is pending) or
--          `duplicate` (another task, the holder, has its lock)
--
-- Keeps: a task that leaves the archive takes its lock again, owes no hook, and starts with all its
-- retries. A deadline that has passed is dropped, because the next claim would archive the task for it.
-- Not allowed when Redis is out of memory.

read_meta()
local id = ARGV[2]
local set = locate(id)
local record = set and read_record(id)
if not record then
  return { 'missing', '' }
end
if set == ACTIVE or set == PENDING or set == COMPLETED then
  return { set == PENDING and 'already' or set == ACTIVE and 'active' or 'completed', '' }
end
local key, mode = lock_of(record.unique)
if set == ARCHIVED and key and mode ~= 'time' then
  local holder = holder_in_force(key)
  if holder and holder ~= id then
    return { 'duplicate', holder }
  end
end

redis.call('ZREM', set, id)
redis.call('ZREM', HOOKS, id)
redis.call('ZREM', DEADLINES, id)
for _, field in ipairs({ 'deadline', 'start_before' }) do
  local at = finite(record[field])
  if at and at <= now then
    redis.call('HDEL', record_key(id), field)
    record[field] = nil
  end
end
if set == ARCHIVED then
  redis.call('HDEL', record_key(id), 'reason', 'lost', 'undecodable', 'retried')
  if key and mode ~= 'time' then
    take_lock(id, record, now)
  end
end
await_deadlines({ { id = id, record = record } })
redis.call('ZADD', PENDING, pending_score(1, record.priority), id)
wake()
return { 'done', '' }
