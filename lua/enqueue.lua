#!lua
-- enqueue: new → pending or scheduled.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2…] for each task: id, 1 when the id is the user's own (a generated one holds its time), due
--          (empty: now; `+n`: in n ms; `n`: at that ms), priority, the number of values that
--          follow, then the record's fields and values
-- returns  for each task 1 when it was enqueued, 0 when its id exists
--
-- Keeps: a record exists if and only if its id stands in one state set. Every id is checked before
-- anything is written. Not allowed when Redis is out of memory: then nothing is written at all.

read_meta()
local tasks, records = {}, {}
local at = 2
while at <= #ARGV do
  local task = {
    id = ARGV[at], own_id = ARGV[at + 1] == '1', due = ARGV[at + 2], priority = ARGV[at + 3],
    first = at + 5, last = at + 4 + tonumber(ARGV[at + 4]),
  }
  tasks[#tasks + 1] = task
  records[#records + 1] = record_key(task.id)
  at = task.last + 1
end

local some_exist = redis.call('EXISTS', unpack(records)) > 0
local seen, answers, pending, scheduled = {}, {}, {}, {}
local earliest = nil
for i, task in ipairs(tasks) do
  local exists = seen[task.id] or (some_exist and redis.call('EXISTS', records[i]) == 1)
  seen[task.id] = true
  task.accepted = not exists
  answers[i] = exists and 0 or 1
  if task.accepted then
    local due = nil
    if string.sub(task.due, 1, 1) == '+' then
      due = now + tonumber(string.sub(task.due, 2))
    elseif task.due ~= '' then
      due = tonumber(task.due)
    end
    if due and due > now then
      scheduled[#scheduled + 1] = int(due)
      scheduled[#scheduled + 1] = task.id
      earliest = math.min(earliest or due, due)
    else
      pending[#pending + 1] = pending_score(i, task.priority)
      pending[#pending + 1] = task.id
    end
  end
end
local due_before = earliest and next_due()

local accepted = 0
for i, task in ipairs(tasks) do
  if task.accepted then
    redis.call('HSET', records[i], unpack(ARGV, task.first, task.last))
    if task.own_id then
      redis.call('HSET', records[i], 'enqueued_at', int(now))
    end
    accepted = accepted + 1
  end
end
bulk('ZADD', PENDING, pending)
bulk('ZADD', SCHEDULED, scheduled)
redis.call('HSETNX', META, 'schema', SCHEMA)
if #pending > 0 or (earliest and (not due_before or earliest < due_before)) then
  wake()
end
count({ enqueued = accepted, duplicates = #tasks - accepted })
return answers
