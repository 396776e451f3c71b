#!lua flags=allow-oom
-- archive: active → archived.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  empty, or the recoverer's clock-skew cutoff in ms (see shared/settle.lua)
-- ARGV[3…] for each task: id, lease holder, reason, how many leases were lost in a row (empty:
--          none), error text
-- returns  for each task 1 (done), 0 (there is no such lease) or -1 (another lease lives)
--
-- Keeps: only the holder of the current lease, or a recoverer of one that is surely lost, ends it.

local answers, ended = end_leases(3, 5, 'started_at')
local archived, recovered, by_reason = {}, 0, {}
for _, task in ipairs(ended) do
  local reason, lost, text = ARGV[task.at], ARGV[task.at + 1], ARGV[task.at + 2]
  write_try(task, task.record[3], lost, {
    'last_error', text, 'last_failed_at', int(now), 'reason', reason,
  })
  if lost ~= '' then
    recovered = recovered + 1
  end
  archived[#archived + 1] = int(now)
  archived[#archived + 1] = task.id
  by_reason['archived_' .. reason] = (by_reason['archived_' .. reason] or 0) + 1
end
bulk('ZADD', ARCHIVED, archived)
by_reason.processed, by_reason.failed, by_reason.archived = #ended, #ended, #ended
by_reason.recovered = recovered
count(by_reason)
return answers
