#!lua flags=allow-oom
-- defer: active → scheduled, without spending a retry: a snooze, or a kind that the server lacks.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  empty (see shared/settle.lua)
-- ARGV[3…] for each task: id, lease holder, delay in ms, 1 when its handler was called (else 0)
-- returns  for each task 1 (done), 0 (there is no such lease) or -1 (another lease lives), or a text:
--          cancelled, operator (archived so) or deleted
--
-- Keeps: only the holder of the current lease ends it. A row of lost leases ends only when the
-- handler was called.

local answers, ended = end_leases(3, 4)
local waiting = {}
local try_of = called_by(1)
ended = without_cancelled(answers, ended, try_of)
for _, task in ipairs(ended) do
  local fields = try_of(task)
  if fields then
    write_try(task, '', fields)
  elseif task.record.cancel then
    redis.call('HDEL', record_key(task.id), 'cancel')
  end
  task.due = after(tonumber(ARGV[task.at]))
  waiting[#waiting + 1] = int(task.due)
  waiting[#waiting + 1] = task.id
end
bulk('ZADD', SCHEDULED, waiting)
await_deadlines(ended)
retake_locks(ended)
count({ deferred = #ended })
return answers
