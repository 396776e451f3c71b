#!lua
-- enqueue: new → pending or scheduled.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2…] for each task: id, then 0 (as most are) or 8 and that many of:
--            1 when the id is the user's own (a generated one holds its time), due (empty: now; `+n`:
--            in n ms; `n`: at that ms), priority, deadline of waiting in ms (empty: none), mode of its
--            lock (empty: none), the lock's name, how long the lock lasts
--            at most in ms (empty: no limit), the longest wait of a replaced task in ms (empty: none)
--          then the number of values that follow, and the record's fields and values: kind and
--          payload first
-- returns  for each task 1 (new), 0 (its id exists), { -1, holder } (the lock is held), or
--          { 2, holder } (the holder took its payload and due time)
--
-- Keeps: a record exists if and only if its id stands in one state set; a lock is held only by a task
-- that names it. Everything is decided before anything is written, against what this call has decided
-- so far. Not allowed when Redis is out of memory: then nothing is written at all.

-- The locks of this call's tasks.
local function lock_book() -- seldom
  local book = {}
  -- The holder of a lock, as this call would leave it: { id, mode, and the task if it is new here,
  -- else the set it stands in and its record }.
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

  -- The answer to a task whose id is free.
  function book.decide(task)
    task.lock = base .. ':unique:' .. task.lock_name
    local holder = find_holder(task.lock)
    local replaces = task.mode == 'replace'
    if holder and not (replaces and holder.mode == 'replace') then
      return { -1, holder.id }
    elseif holder and holder.set ~= ACTIVE then
      replace(holder, task)
      return { 2, holder.id }
    end
    locks[task.lock] = { id = task.id, mode = task.mode, task = task }
    if task.max_wait and replaces then
      task.replace_until = now + task.max_wait
      task.due = math.min(task.due or now, task.replace_until)
    end
    return 1
  end

  function book.place_replaced(place, behind)
    for id, change in pairs(replaced) do
      if not change.new then
        place(id, change.due, behind, change.priority)
      end
    end
  end

  function book.remove_replaced()
    for id, change in pairs(replaced) do
      if not change.new then
        redis.call('ZREM', change.set, id)
      end
    end
  end

  function book.take(task, record)
    redis.call('HSET', record, 'unique', task.mode .. ':' .. task.lock_name)
    if task.replace_until then
      redis.call('HSET', record, 'replace_until', int(task.replace_until))
    end
    redis.call('SET', task.lock, task.mode .. ' ' .. task.id)
    if task.lock_ms then
      redis.call('PEXPIRE', task.lock, lock_span(task.lock_ms, task.due or now))
      if task.mode ~= 'time' then
        redis.call('HSET', record, 'lock_time', int(task.lock_ms))
      end
    end
  end

  function book.write_replaced()
    for id, change in pairs(replaced) do
      redis.call('HSET', record_key(id), 'payload', change.payload)
      local span = not change.new and lock_span(change.lock_time, change.due)
      if span then
        redis.call('PEXPIRE', change.lock, span)
      end
    end
  end
  return book
end

local schema = read_meta()[1]
local tasks, records, book = {}, {}, nil
local at = 2
while at <= #ARGV do
  local task = { id = ARGV[at], first = 0, last = 0, accepted = false }
  local options = tonumber(ARGV[at + 1])
  at = at + 2
  if options > 0 then
    local due = ARGV[at + 1]
    task.own_id, task.priority, task.deadline = ARGV[at] == '1', ARGV[at + 2], tonumber(ARGV[at + 3])
    task.due = string.sub(due, 1, 1) == '+' and after(tonumber(due)) or tonumber(due)
    task.mode, task.lock_name = ARGV[at + 4], ARGV[at + 5]
    task.lock_ms, task.max_wait = tonumber(ARGV[at + 6]), tonumber(ARGV[at + 7])
    task.locks = task.mode ~= ''
    book = book or (task.locks and lock_book())
    at = at + options
  end
  task.first, task.last = at + 1, at + tonumber(ARGV[at])
  at = task.last + 1
  tasks[#tasks + 1] = task
  records[#records + 1] = record_key(task.id)
end

local some_exist = redis.call('EXISTS', unpack(records)) > 0
local seen, answers, counts = {}, {}, { enqueued = 0, duplicates = 0, replaced = 0 }
for i, task in ipairs(tasks) do
  local answer = 1
  if seen[task.id] or (some_exist and redis.call('EXISTS', records[i]) == 1) then
    answer = 0
  elseif task.locks then
    answer = book.decide(task)
  end
  answers[i] = answer
  if answer == 1 then
    seen[task.id] = true
    task.accepted = true
    counts.enqueued = counts.enqueued + 1
  elseif answer ~= 0 and answer[1] == 2 then
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
if book then
  book.place_replaced(place, #tasks)
end
local forwards = #scheduled + #deadlines > 0
local due_before = forwards and next_due()

-- State sets first: only their keys can be of another type, and then nothing is written.
if book then
  book.remove_replaced()
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
    if task.locks then
      book.take(task, records[i])
    end
  end
end
if book then
  book.write_replaced()
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
