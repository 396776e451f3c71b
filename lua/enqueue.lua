#!lua
-- enqueue: new → pending or scheduled.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2…] for each task: id, 1 when the id is the user's own (a generated one holds its time), due
--          (empty: now; `+n`: in n ms; `n`: at that ms), priority, then 0 or 5 and that many of:
--            deadline of waiting in ms (empty: none), mode of its lock (empty: none), the lock's key
--            (empty: by kind and payload), how long the lock lasts at most in ms (empty: no limit),
--            the longest wait of a replaced task in ms (empty: no limit)
--          then the number of values that follow, and the record's fields and values: kind and
--          payload first
-- returns  for each task 1 (new), 0 (its id exists), { -1, holder } (the lock is held), or
--          { 2, holder } (the holder took its payload and due time)
--
-- Keeps: a record exists if and only if its id stands in one state set; a lock is held only by a task
-- that names it. Everything is decided before anything is written, against what this call has decided
-- so far. Not allowed when Redis is out of memory: then nothing is written at all.

local schema = read_meta()[1]
local tasks, records = {}, {}
local at = 2
while at <= #ARGV do
  local task = { id = ARGV[at], own_id = ARGV[at + 1] == '1', due = nil, priority = ARGV[at + 3] }
  local due = ARGV[at + 2]
  if string.sub(due, 1, 1) == '+' then
    task.due = after(tonumber(string.sub(due, 2)))
  elseif due ~= '' then
    task.due = tonumber(due)
  end
  local extras = tonumber(ARGV[at + 4])
  at = at + 5
  if extras > 0 then
    task.deadline, task.mode, task.key = tonumber(ARGV[at]), ARGV[at + 1], ARGV[at + 2]
    task.lock_ms, task.max_wait = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    at = at + extras
  end
  task.first, task.last = at + 1, at + tonumber(ARGV[at])
  at = task.last + 1
  tasks[#tasks + 1] = task
  records[#records + 1] = record_key(task.id)
end

-- The holder of a lock, as this call would leave it: { id, mode, and the task if it is new here, else
-- the set it stands in and its record }.
local locks, replaced = {}, {}
local function find_holder(key)
  if locks[key] == nil then
    local id, mode, set, record = holder_in_force(key)
    locks[key] = id and { id = id, mode = mode, set = set, record = record } or false
  end
  return locks[key]
end

-- Gives a waiting holder the payload and due time of a task that would replace it.
local function replace(holder, task)
  local change = replaced[holder.id]
  if not change then
    change = { id = holder.id, set = holder.set, new = holder.task }
    if holder.record then
      change.limit, change.priority = finite(holder.record.replace_until), holder.record.priority
      change.lock, change.lock_time = task.lock, holder.record.lock_time
    end
    replaced[holder.id] = change
  end
  local limit = holder.task and holder.task.replace_until or change.limit
  local due = math.max(task.due or now, now)
  if limit then
    due = math.min(due, limit)
  end
  change.payload = ARGV[task.first + 3]
  change.due = due
  if holder.task then
    holder.task.due = due
  end
end

local some_exist = redis.call('EXISTS', unpack(records)) > 0
local seen, answers, counts = {}, {}, { enqueued = 0, duplicates = 0, replaced = 0 }
for i, task in ipairs(tasks) do
  local holder = nil
  if seen[task.id] or (some_exist and redis.call('EXISTS', records[i]) == 1) then
    answers[i] = 0
  elseif task.mode and task.mode ~= '' then
    task.digest = task.key ~= '' and task.key
      or redis.sha1hex(ARGV[task.first + 1] .. '\0' .. ARGV[task.first + 3])
    task.lock = base .. ':unique:' .. task.digest
    holder = find_holder(task.lock)
    if holder and task.mode == 'replace' and holder.mode == 'replace' and holder.set ~= ACTIVE then
      replace(holder, task)
      answers[i] = { 2, holder.id }
    elseif holder and not (task.mode == 'replace' and holder.mode == 'replace') then
      answers[i] = { -1, holder.id }
    end
  end
  if answers[i] == nil then
    answers[i] = 1
    seen[task.id] = true
    task.accepted = true
    counts.enqueued = counts.enqueued + 1
    if task.lock then
      locks[task.lock] = { id = task.id, mode = task.mode, task = task }
      if task.max_wait and task.mode == 'replace' then
        task.replace_until = now + task.max_wait
        task.due = math.min(task.due or now, task.replace_until)
      end
    end
  elseif answers[i] ~= 0 and answers[i][1] == 2 then
    counts.replaced = counts.replaced + 1
  else
    counts.duplicates = counts.duplicates + 1
  end
end

local pending, scheduled, deadlines = {}, {}, {}
local function place(id, due, i, priority)
  local set = pending
  if due and due > now then
    set = scheduled
    set[#set + 1] = int(due)
  else
    set[#set + 1] = pending_score(i, priority)
  end
  set[#set + 1] = id
end
for i, task in ipairs(tasks) do
  if task.accepted then
    place(task.id, task.due, i, task.priority)
    if task.deadline then
      deadlines[#deadlines + 1] = int(task.deadline)
      deadlines[#deadlines + 1] = task.id
    end
  end
end
for id, change in pairs(replaced) do
  if not change.new then
    place(id, change.due, #tasks, change.priority)
  end
end
local forwards = #scheduled + #deadlines > 0
local due_before = forwards and next_due()

-- State sets first: only their keys can be of another type, and then nothing is written.
for id, change in pairs(replaced) do
  if not change.new then
    redis.call('ZREM', change.set, id)
  end
end
bulk('ZADD', PENDING, pending)
bulk('ZADD', SCHEDULED, scheduled)
bulk('ZADD', DEADLINES, deadlines)
for i, task in ipairs(tasks) do
  if task.accepted then
    -- Thousands of small headers are more than `unpack` takes at once.
    for first = task.first, task.last, 1000 do
      redis.call('HSET', records[i], unpack(ARGV, first, math.min(first + 999, task.last)))
    end
    if task.own_id then
      redis.call('HSET', records[i], 'enqueued_at', int(now))
    end
    if task.lock then
      redis.call('HSET', records[i], 'unique', task.mode .. ':' .. task.digest)
      if task.replace_until then
        redis.call('HSET', records[i], 'replace_until', int(task.replace_until))
      end
      redis.call('SET', task.lock, task.mode .. ' ' .. task.id)
      if task.lock_ms then
        redis.call('PEXPIRE', task.lock, lock_span(task.lock_ms, task.due or now))
        if task.mode ~= 'time' then
          redis.call('HSET', records[i], 'lock_time', int(task.lock_ms))
        end
      end
    end
  end
end
for id, change in pairs(replaced) do
  redis.call('HSET', record_key(id), 'payload', change.payload)
  local span = not change.new and lock_span(change.lock_time, change.due)
  if span then
    redis.call('PEXPIRE', change.lock, span)
  end
end
if not schema then
  redis.call('HSET', META, 'schema', SCHEMA)
end
local due = forwards and #pending == 0 and next_due()
if #pending > 0 or (due and (not due_before or due < due_before)) then
  wake()
end
count(counts)
return answers
