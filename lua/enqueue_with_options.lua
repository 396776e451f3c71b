#!lua
-- enqueue_with_options: new → pending or scheduled, for a call in which any task has an option: a lock, a
-- due time, a priority, a deadline or an id of the user's own (none has: enqueue).
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2…] for each task: id, then 0 or 8 and that many of:
--            1 when the id is the user's own (a generated one holds its time), due (empty: now; `+n`:
--            in n ms; `n`: at that ms), priority, deadline of waiting in ms (empty: none), mode of its
--            lock (empty: none), the lock's name, how long the lock lasts at most in ms (empty: no
--            limit), the longest wait of a replaced task in ms (empty: none)
--          then the number of values that follow, and the record's fields and values: kind and
--          payload first
-- returns  for each task 1 (new), 0 (its id exists), { -1, holder } (the lock is held), or
--          { 2, holder } (the holder became this task)
--
-- Keeps: a record exists if and only if its id is in one state set; a lock is held only by a task that
-- names it. A task replaces only one of its kind: one that waits becomes it, but for its id and its
-- longest wait; one that runs is superseded, and dropped unless it completes (see shared/settle.lua).
-- Each task is decided against what this call has decided so far. Not allowed when Redis is out of
-- memory: then nothing is written at all.
-- Uses: values, time, keys, schema, wake, score, due, counters, records, locks, taking

local function read_tasks()
  local tasks, at = {}, 2
  while at <= #ARGV do
    local id, options = ARGV[at], tonumber(ARGV[at + 1])
    local task = { id = id, record = record_key(id), n = #tasks + 1 }
    -- Whose fields and options its record gets: its own, or those of the task that replaces it.
    task.content = task
    at = at + 2
    if options > 0 then
      local has_own_id, due, priority, deadline, mode, lock_name, lock_time, longest_wait = unpack(ARGV, at, at + options - 1)
      task.enqueued_at = has_own_id == '1' and int(now) or nil
      task.due = string.sub(due, 1, 1) == '+' and after(tonumber(due)) or tonumber(due)
      task.priority, task.deadline = tonumber(priority), tonumber(deadline)
      task.mode, task.lock_name = mode ~= '' and mode or nil, lock_name
      task.lock_time, task.longest_wait = tonumber(lock_time), tonumber(longest_wait)
      at = at + options
    end
    task.first, task.last = at + 1, at + tonumber(ARGV[at])
    task.kind = ARGV[task.first + 1]
    at = task.last + 1
    tasks[#tasks + 1] = task
  end
  return tasks
end

-- Who holds each lock that this call has looked at, as this call leaves it, or false: a task of this call,
-- or the same fields of a task that was there before, and the `set` it is in.
local holders = {}
-- Those who were there before and are replaced: each has the `content` and the `due` of a new task.
local replaced = {}
-- The records of those who run and lose their lock to a new task.
local superseded = {}

local function find_holder(lock)
  if holders[lock] == nil then
    local id, mode, set, record = holder_in_force(lock)
    local holder = id and { id = id, record = record_key(id), mode = mode, set = set }
    if record then
      holder.kind, holder.enqueued_at = record.kind, record.enqueued_at
      holder.replace_until = finite(record.replace_until)
    end
    holders[lock] = holder or false
  end
  return holders[lock]
end

local function replace(holder, task)
  if not holder.content then
    replaced[#replaced + 1] = holder
  end
  holder.content = task
  holder.due = math.max(task.due or now, now)
  if holder.replace_until then
    holder.due = math.min(holder.due, holder.replace_until)
  end
end

-- Whether a task whose id is free gets its lock: the reply to it.
local function decide(task)
  local lock = key('unique:' .. task.lock_name)
  local holder = find_holder(lock)
  local merges = holder and task.mode == 'replace' and holder.mode == 'replace' and task.kind == holder.kind
  if holder and not merges then
    return { -1, holder.id }
  end
  if holder and holder.set ~= 'active' then
    replace(holder, task)
    return { 2, holder.id }
  end
  if holder then
    superseded[#superseded + 1] = holder.record
  end
  holders[lock] = task
  if task.longest_wait and task.mode == 'replace' then
    task.replace_until = now + task.longest_wait
    task.due = math.min(task.due or now, task.replace_until)
  end
  return 1
end

local function write(task)
  local record, content = task.record, task.content
  -- Thousands of small headers are more than `unpack` takes at once.
  for first = content.first, content.last, 1000 do
    redis.call('HSET', record, unpack(ARGV, first, math.min(first + 999, content.last)))
  end
  if task.enqueued_at then
    redis.call('HSET', record, 'enqueued_at', task.enqueued_at)
  end
  if not content.mode then
    return
  end
  redis.call('HSET', record, 'unique', content.mode .. ':' .. content.lock_name)
  if task.replace_until then
    redis.call('HSET', record, 'replace_until', int(task.replace_until))
  end
  -- A lock for a time is never taken again.
  if content.lock_time and content.mode ~= 'time' then
    redis.call('HSET', record, 'lock_time', int(content.lock_time))
  end
  set_lock(key('unique:' .. content.lock_name), content.mode, task.id, content.lock_time, task.due or now)
end

local schema = redis.call('HMGET', key('meta'), 'schema')[1]
check_schema(schema)
local tasks = read_tasks()
local records = {}
for i, task in ipairs(tasks) do
  records[i] = task.record
end
-- One look for the common case: none of the ids exists.
local some_exist = redis.call('EXISTS', unpack(records)) > 0
local replies, new, seen, replacing = {}, {}, {}, 0
for i, task in ipairs(tasks) do
  local exists = seen[task.id] or (some_exist and redis.call('EXISTS', task.record) == 1)
  local reply = exists and 0 or (task.mode and decide(task) or 1)
  if reply == 1 then
    seen[task.id] = true
    new[#new + 1] = task
  elseif reply ~= 0 and reply[1] == 2 then
    replacing = replacing + 1
  end
  replies[i] = reply
end

local pending, scheduled, deadlines = {}, {}, {}
local function add(task)
  local content = task.content
  if task.due and task.due > now then
    scheduled[#scheduled + 1] = task.due
    scheduled[#scheduled + 1] = task.id
  else
    pending[#pending + 1] = pending_score(content.n, content.priority)
    pending[#pending + 1] = task.id
  end
  if content.deadline then
    deadlines[#deadlines + 1] = content.deadline
    deadlines[#deadlines + 1] = task.id
  end
end
for _, task in ipairs(new) do
  add(task)
end
for _, holder in ipairs(replaced) do
  add(holder)
end
local due_before = next_due()

-- The state sets first: only their keys can be of another type, and then nothing is written.
for _, holder in ipairs(replaced) do
  redis.call('ZREM', key(holder.set), holder.id)
  redis.call('ZREM', key('deadlines'), holder.id)
end
bulk('ZADD', key('pending'), pending)
bulk('ZADD', key('scheduled'), scheduled)
bulk('ZADD', key('deadlines'), deadlines)
for _, holder in ipairs(replaced) do
  redis.call('DEL', holder.record)
  write(holder)
end
for _, task in ipairs(new) do
  write(task)
end
for _, record in ipairs(superseded) do
  redis.call('HSET', record, 'superseded', 1)
end
if not schema then
  redis.call('HSET', key('meta'), 'schema', 1)
end
-- Servers have to hear of work, and of what is due earlier than all before it.
local due = next_due()
if #pending > 0 or (due and (not due_before or due < due_before)) then
  wake()
end
count('enqueued', #new)
count('replaced', replacing)
count('duplicates', #tasks - #new - replacing)
return replies
