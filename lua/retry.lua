#!lua flags=allow-oom
-- retry: active → retry, → pending when the delay is 0, or → archived when it would be due too late.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  empty, or the recoverer's clock-skew cutoff in ms (see shared/settle.lua)
-- ARGV[3…] for each task: id, lease holder, delay in ms, 1 when this try spends a retry (else 0),
--          how many leases were lost in a row (empty: none), how often in a row its payload could not
--          be decoded (empty: not now), error text
-- returns  for each task 1 (done), 0 (there is no such lease) or -1 (another lease lives), or a text:
--          deadline_passed, cancelled, operator (archived so) or deleted
--
-- Keeps: only the holder of the current lease, or a recoverer of one that is surely lost, ends it.

local answers, ended = end_leases(3, 7)
local waiting, waiting_tasks, pending, late = {}, {}, {}, {}
local counts = { retried = 0, failed = 0, recovered = 0 }
for i, task in ipairs(without_cancelled(answers, ended, failed_with(4))) do
  local record, delay, spends = task.record, tonumber(ARGV[task.at]), ARGV[task.at + 1] == '1'
  local lost, undecodable, text = ARGV[task.at + 2], ARGV[task.at + 3], ARGV[task.at + 4]
  local fields = { 'last_error', text, 'last_failed_at', int(now) }
  if spends then
    fields[5], fields[6] = 'retried', int((finite(record.retried) or 0) + 1)
    counts.failed = counts.failed + 1
  end
  write_try(task, lost, fields, undecodable)
  counts.recovered = counts.recovered + (lost ~= '' and 1 or 0)
  local deadline = wait_deadline(record)
  local due = delay > 0 and after(delay) or now
  if deadline and due >= deadline then
    late[#late + 1] = task.ending
    answers[task.i] = 'deadline_passed'
  else
    counts.retried = counts.retried + 1
    waiting_tasks[#waiting_tasks + 1] = task
    if delay > 0 then
      waiting[#waiting + 1] = int(due)
      waiting[#waiting + 1] = task.id
    else
      -- A lost task has had its turn: it goes back to its place, not behind the backlog.
      pending[#pending + 1] = lost ~= '' and task.place or pending_score(i, record.priority)
      pending[#pending + 1] = task.id
    end
  end
end
bulk('ZADD', RETRY, waiting)
bulk('ZADD', PENDING, pending)
await_deadlines(waiting_tasks)
bury(late, 'deadline_passed')
if #pending > 0 then
  wake()
end
counts.processed, counts.expired = counts.failed, #late
count(counts)
return answers
