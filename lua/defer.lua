#!lua flags=allow-oom
-- defer: active → scheduled, without spending a retry: a snooze, or a kind that the server lacks.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  empty (see shared/settle.lua)
-- ARGV[3…] for each task: id, lease holder, delay in ms, 1 when its handler was called (else 0)
-- returns  for each task 1 (done), 0 (there is no such lease), -1 (another lease lives), `cancelled`,
--          `operator`, `deleted` or `superseded` (see shared/settle.lua)
--
-- Keeps: only the holder of the current lease ends it. A row of lost leases ends only when the
-- handler was called.
-- Uses: values, time, keys, types, deadlines, waiting, counters, records, locks, taking, waiters, broken, endings, erase, leases, settle

local function read_tasks()
  local tasks = {}
  for at = 3, #ARGV, 4 do
    local id, holder, delay, was_called = unpack(ARGV, at, at + 3)
    tasks[#tasks + 1] = {
      id = id, holder = holder, due = after(tonumber(delay)), try = was_called == '1' and {} or nil,
    }
  end
  return tasks
end

local tasks = read_tasks()
local deferred = settle_cancelled(end_leases(tasks, 'scheduled'))
local waiting = {}
for _, task in ipairs(deferred) do
  write_try(task, '', '')
  waiting[#waiting + 1] = task.due
  waiting[#waiting + 1] = task.id
end
bulk('ZADD', key('scheduled'), waiting)
note_deadlines(deferred)
retake_locks(deferred)
count('deferred', #deferred)
return outcomes_of(tasks)
