#!lua flags=allow-oom
-- retry: active → retry, or → pending when the delay is 0.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  empty, or the recoverer's clock-skew cutoff in ms (see shared/settle.lua)
-- ARGV[3…] for each task: id, lease holder, delay in ms, 1 when this try spends a retry (else 0),
--          how many leases were lost in a row (empty: none), error text
-- returns  for each task 1 (done), 0 (there is no such lease) or -1 (another lease lives)
--
-- Keeps: only the holder of the current lease, or a recoverer of one that is surely lost, ends it.

local answers, ended = end_leases(3, 6, 'retried', 'started_at', 'priority')
local waiting, pending, failed, recovered = {}, {}, 0, 0
for i, task in ipairs(ended) do
  local delay, spends = tonumber(ARGV[task.at]), ARGV[task.at + 1] == '1'
  local lost, text = ARGV[task.at + 2], ARGV[task.at + 3]
  local fields = { 'last_error', text, 'last_failed_at', int(now) }
  if spends then
    fields[5], fields[6] = 'retried', int((tonumber(task.record[3]) or 0) + 1)
    failed = failed + 1
  end
  write_try(task, task.record[4], lost, fields)
  if lost ~= '' then
    recovered = recovered + 1
  end
  if delay > 0 then
    waiting[#waiting + 1] = int(now + delay)
    waiting[#waiting + 1] = task.id
  else
    pending[#pending + 1] = pending_score(i, task.record[5])
    pending[#pending + 1] = task.id
  end
end
bulk('ZADD', RETRY, waiting)
bulk('ZADD', PENDING, pending)
if #pending > 0 then
  wake()
end
count({ processed = failed, failed = failed, retried = #ended, recovered = recovered })
return answers
