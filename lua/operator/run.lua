#!lua
-- run: scheduled, retry, archived → pending, now; or → gone where a newer task has taken its place.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  id
-- returns  { outcome, holder }: `done`, `missing`, `active`, `completed`, `already` (it is pending) or
--          `duplicate` (another task, the holder, has its lock) or `superseded` (it was dropped)
--
-- Keeps: a task that leaves the archive takes its lock again, owes no hook, and starts with all its
-- retries. A deadline that has passed is dropped, because the next claim would archive the task for it.
-- Not allowed when Redis is out of memory.
-- Uses: values, time, keys, types, schema, wake, score, deadlines, waiting, counters, records, locks, taking, waiters, erase

check_schema(redis.call('HGET', key('meta'), 'schema'))
local id = ARGV[2]
local set = locate(id)
local record = set and read_record(id)
if not record then
  return { 'missing', '' }
end
if set == 'active' or set == 'pending' or set == 'completed' then
  return { set == 'pending' and 'already' or set, '' }
end
check_types('hooks', 'deadlines')
-- Servers of 0.1 let it wait, or archived it.
if record.superseded then
  redis.call('ZREM', key(set), id)
  redis.call('ZREM', key('deadlines'), id)
  erase({ { id = id } }, 'superseded')
  return { 'superseded', '' }
end
local lock, mode = lock_of(record.unique)
if set == 'archived' and lock and mode ~= 'time' then
  local holder = holder_in_force(lock)
  if holder and holder ~= id then
    return { 'duplicate', holder }
  end
end

redis.call('ZREM', key(set), id)
redis.call('ZREM', key('hooks'), id)
redis.call('ZREM', key('deadlines'), id)
for _, field in ipairs({ 'deadline', 'start_before' }) do
  local time = finite(record[field])
  if time and time <= now then
    redis.call('HDEL', record_key(id), field)
    record[field] = nil
  end
end
if set == 'archived' then
  redis.call('HDEL', record_key(id), 'reason', 'lost', 'undecodable', 'retried', 'hook_failed')
  if lock and mode ~= 'time' then
    take_lock(id, record, now)
  end
end
note_deadlines({ { id = id, record = record } })
redis.call('ZADD', key('pending'), pending_score(1, finite(record.priority)), id)
wake()
return { 'done', '' }
