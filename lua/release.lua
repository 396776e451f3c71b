#!lua flags=allow-oom
-- release: active → pending, at its old place, without spending a retry: a server hands work back.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  empty (see shared/settle.lua)
-- ARGV[3…] for each task: id, lease holder, 1 when its handler was called (else 0)
-- returns  for each task 1 (done), 0 (there is no such lease), -1 (another lease lives), `cancelled`,
--          `operator`, `deleted` or `superseded` (see shared/settle.lua)
--
-- Keeps: only the holder of the current lease ends it. A row of lost leases goes on.
-- Uses: values, time, keys, types, wake, score, deadlines, waiting, counters, records, locks, taking, waiters, broken, endings, erase, leases, settle

local function read_tasks()
  local tasks = {}
  for at = 3, #ARGV, 3 do
    local id, holder, was_called = unpack(ARGV, at, at + 2)
    tasks[#tasks + 1] = { id = id, holder = holder, due = now, try = was_called == '1' and {} or nil }
  end
  return tasks
end

local tasks = read_tasks()
local released = settle_cancelled(end_leases(tasks, 'pending'))
local pending = {}
for n, task in ipairs(released) do
  write_try(task, task.record.lost or '', '')
  pending[#pending + 1] = task.place or pending_score(n, finite(task.record.priority))
  pending[#pending + 1] = task.id
end
bulk('ZADD', key('pending'), pending)
note_deadlines(released)
retake_locks(released)
if #pending > 0 then
  wake()
end
count('released', #released)
return outcomes_of(tasks)
