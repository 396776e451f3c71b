#!lua flags=allow-oom
-- release: active → pending, at its old place, without spending a retry: a server hands work back.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  empty (see shared/settle.lua)
-- ARGV[3…] for each task: id, lease holder, 1 when its handler was called (else 0)
-- returns  for each task 1 (done), 0 (there is no such lease) or -1 (another lease lives), or a text:
--          cancelled, operator (archived so) or deleted
--
-- Keeps: only the holder of the current lease ends it. A row of lost leases goes on.

local answers, ended = end_leases(3, 3)
local pending = {}
local try_of = called_by(0)
ended = without_cancelled(answers, ended, try_of)
for i, task in ipairs(ended) do
  local fields = try_of(task)
  if fields then
    write_try(task, task.record.lost or '', fields)
  elseif task.record.cancel then
    redis.call('HDEL', record_key(task.id), 'cancel')
  end
  task.due = now
  pending[#pending + 1] = task.place or pending_score(i, task.record.priority)
  pending[#pending + 1] = task.id
end
bulk('ZADD', PENDING, pending)
await_deadlines(ended)
retake_locks(ended)
if #pending > 0 then
  wake()
end
count({ released = #ended })
return answers
