#!lua flags=allow-oom
-- archive: active → archived.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  empty, or the recoverer's clock-skew cutoff in ms (see shared/settle.lua)
-- ARGV[3…] for each task: id, lease holder, reason, how many leases were lost in a row (empty:
--          none), error text
-- returns  for each task 1 (done), 0 (there is no such lease) or -1 (another lease lives), or a text:
--          cancelled, operator (archived so) or deleted
--
-- Keeps: only the holder of the current lease, or a recoverer of one that is surely lost, ends it. An
-- archived task holds no lock but one for a time, and its hook is owed if its kind has one. A cancel
-- goes before what no handler has said.

-- Reasons of tasks whose handlers would have been called again.
local UNSAID = { retries_exhausted = true, lease_expired = true }

local answers, ended = end_leases(3, 5)
local said, unsaid = {}, {}
for _, task in ipairs(ended) do
  local list = UNSAID[ARGV[task.at]] and unsaid or said
  list[#list + 1] = task
end
for _, task in ipairs(without_cancelled(answers, unsaid, failed_with(2))) do
  said[#said + 1] = task
end
local by_reason, recovered = {}, 0
for _, task in ipairs(said) do
  local reason, lost, text = ARGV[task.at], ARGV[task.at + 1], ARGV[task.at + 2]
  write_try(task, lost, { 'last_error', text, 'last_failed_at', int(now) })
  recovered = recovered + (lost ~= '' and 1 or 0)
  by_reason[reason] = by_reason[reason] or {}
  table.insert(by_reason[reason], task.ending)
end
for reason, endings in pairs(by_reason) do
  bury(endings, reason)
end
count({ processed = #said, failed = #said, recovered = recovered })
return answers
