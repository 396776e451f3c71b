#!lua flags=allow-oom
-- retry: active → retry, → pending when the delay is 0, or → archived when it would be due too late.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  empty, or the recoverer's clock-skew cutoff in ms (see shared/settle.lua)
-- ARGV[3…] for each task: id, lease holder, delay in ms, 1 when this try spends a retry (else 0),
--          how many leases were lost in a row (empty: none), how often in a row its payload could not
--          be decoded (empty: not now), error text
-- returns  for each task 1 (done), 0 (there is no such lease), -1 (another lease lives),
--          `deadline_passed`, `cancelled`, `operator`, `deleted` or `superseded` (see shared/settle.lua)
--
-- Keeps: only the holder of the current lease, or a recoverer of one that is surely lost, ends it.
-- Uses: values, time, keys, types, wake, score, deadlines, waiting, counters, records, locks, taking, waiters, broken, endings, erase, leases, settle

local function read_tasks()
  local tasks = {}
  for at = 3, #ARGV, 7 do
    local id, holder, delay, spends_retry, lost, undecodable, error_text = unpack(ARGV, at, at + 6)
    tasks[#tasks + 1] = {
      id = id, holder = holder, delay = tonumber(delay), spends_retry = spends_retry == '1', lost = lost,
      undecodable = undecodable, error = error_text,
      try = { 'last_error', error_text, 'last_failed_at', int(now) },
    }
  end
  return tasks
end

local tasks = read_tasks()
local retried, late, waiting, pending = {}, {}, {}, {}
local failed = 0
for n, task in ipairs(settle_cancelled(end_leases(tasks, 'retry', 'pending'))) do
  local record = task.record
  if task.spends_retry then
    table.insert(task.try, 'retried')
    table.insert(task.try, int((finite(record.retried) or 0) + 1))
    failed = failed + 1
  end
  write_try(task, task.lost, task.undecodable)
  local deadline = wait_deadline(record)
  task.due = task.delay > 0 and after(task.delay) or now
  if deadline and task.due >= deadline then
    task.outcome = 'deadline_passed'
    task.ending.last_error = task.error
    late[#late + 1] = task.ending
  else
    retried[#retried + 1] = task
    if task.delay > 0 then
      waiting[#waiting + 1] = task.due
      waiting[#waiting + 1] = task.id
    else
      -- A lost task has had its turn: it goes back to its place, not behind the backlog.
      pending[#pending + 1] = task.lost ~= '' and task.place or pending_score(n, finite(record.priority))
      pending[#pending + 1] = task.id
    end
  end
end
bulk('ZADD', key('retry'), waiting)
bulk('ZADD', key('pending'), pending)
note_deadlines(retried)
retake_locks(retried)
archive(late, 'deadline_passed')
if #pending > 0 then
  wake()
end
count('processed', failed)
count('failed', failed)
count('retried', #retried)
count('expired', #late)
return outcomes_of(tasks)
