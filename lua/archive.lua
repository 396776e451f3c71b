#!lua flags=allow-oom
-- archive: active → archived.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  empty, or the recoverer's clock-skew cutoff in ms (see shared/settle.lua)
-- ARGV[3…] for each task: id, lease holder, reason, how many leases were lost in a row (empty:
--          none), error text
-- returns  for each task 1 (done), 0 (there is no such lease), -1 (another lease lives), `cancelled`,
--          `operator`, `deleted` or `superseded` (see shared/settle.lua)
--
-- Keeps: only the holder of the current lease, or a recoverer of one that is surely lost, ends it. An
-- archived task holds no lock but one for a time, and its hook is owed if its kind has one. A cancel
-- takes precedence where the task has only run out of tries; other reasons are a decision and stay.
-- Uses: values, time, keys, types, counters, records, locks, taking, waiters, broken, endings, erase, leases, settle

local function read_tasks()
  local tasks = {}
  for at = 3, #ARGV, 5 do
    local id, holder, reason, lost, error_text = unpack(ARGV, at, at + 4)
    tasks[#tasks + 1] = {
      id = id, holder = holder, reason = reason, lost = lost,
      try = { 'last_error', error_text, 'last_failed_at', int(now) },
    }
  end
  return tasks
end

local tasks = read_tasks()
local decided, undecided = {}, {}
for _, task in ipairs(end_leases(tasks, 'archived', 'hooks')) do
  local has_run_out = task.reason == 'retries_exhausted' or task.reason == 'lease_expired'
  table.insert(has_run_out and undecided or decided, task)
end
for _, task in ipairs(settle_cancelled(undecided)) do
  decided[#decided + 1] = task
end

local by_reason = {}
for _, task in ipairs(decided) do
  write_try(task, task.lost, '')
  by_reason[task.reason] = by_reason[task.reason] or {}
  table.insert(by_reason[task.reason], task.ending)
end
for reason, endings in pairs(by_reason) do
  archive(endings, reason)
end
count('processed', #decided)
count('failed', #decided)
return outcomes_of(tasks)
