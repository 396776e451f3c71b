-- How tasks end, and what they hold while they live: locks, deadlines, hooks, those who wait for
-- them. Stands after base.lua. The functions that read come first; a script calls them before it
-- writes anything.

-- For how long from now a task may hold its lock if it is due at `due`, in ms: text, or nil for ever.
local function lock_span(lock_time, due)
  lock_time = finite(lock_time)
  return lock_time and int(math.max(1, math.min(lock_time + math.max(0, due - now), 2 ^ 52)))
end

-- Gives a task that is due then the lock that its record names; `only_if` may be NX.
local function take_lock(id, record, due, only_if)
  local key, mode = lock_of(record.unique)
  local args = { key, mode .. ' ' .. id, only_if }
  local span = lock_span(record.lock_time, due)
  if span then
    args[#args + 1] = 'PX'
    args[#args + 1] = span
  end
  redis.call('SET', unpack(args))
end

-- When a waiting task is given up, in ms, or nil: at its deadline, and before its first start also at
-- its `start_before`.
local function wait_deadline(record)
  local deadline = finite(record.deadline)
  local start_before = not record.started_at and finite(record.start_before)
  if start_before and (not deadline or start_before < deadline) then
    return start_before
  end
  return deadline
end

-- A task that is about to end, with what that will touch. Reads.
local hooked_kinds = {}
local function ending(id, record)
  if hooked_kinds[record.kind] == nil then
    hooked_kinds[record.kind] = redis.call('HGET', META, 'hook:' .. record.kind) ~= false
  end
  return { id = id, lock = lock_to_free(id, record.unique), hook = hooked_kinds[record.kind] }
end

-- Tells those who wait for these tasks, who then look for themselves. Costs one EXISTS when nobody
-- waits for anything.
local function tell_waiters(ids)
  if #ids > 0 and redis.call('EXISTS', WAITERS) == 1 then
    for _, id in ipairs(ids) do
      if redis.call('ZREM', WAITERS, id) == 1 then
        redis.call('PUBLISH', base .. ':ended', id)
      end
    end
  end
end

local function ids_of(tasks)
  local ids = {}
  for i, task in ipairs(tasks) do
    ids[i] = task.id
  end
  return ids
end

-- Archives endings, which the caller has removed from their state set: frees their locks, and owes
-- the hooks of kinds that have one, unless an operator archives.
local function bury(endings, reason, by_operator)
  if #endings == 0 then
    return
  end
  local archived, owed = {}, {}
  for _, task in ipairs(endings) do
    redis.call('HSET', record_key(task.id), 'reason', reason)
    redis.call('HDEL', record_key(task.id), 'cancel')
    archived[#archived + 1] = int(now)
    archived[#archived + 1] = task.id
    if task.lock then
      redis.call('DEL', task.lock)
    end
    if task.hook and not by_operator then
      owed[#owed + 1] = int(now)
      owed[#owed + 1] = task.id
    end
  end
  bulk('ZADD', ARCHIVED, archived)
  bulk('ZADD', HOOKS, owed)
  tell_waiters(ids_of(endings))
  count({ archived = #endings, ['archived_' .. reason] = #endings })
end

-- Deletes endings, which the caller has removed from their state set, with their records.
local function erase(endings)
  for _, task in ipairs(endings) do
    redis.call('DEL', record_key(task.id))
    if task.lock then
      redis.call('DEL', task.lock)
    end
  end
  if #endings > 0 then
    local ids = ids_of(endings)
    bulk('ZREM', HOOKS, ids)
    tell_waiters(ids)
    count({ deleted = #endings })
  end
end

-- Notes the deadlines of tasks that begin to wait: { id = …, record = … }.
local function await_deadlines(tasks)
  local deadlines = {}
  for _, task in ipairs(tasks) do
    local deadline = wait_deadline(task.record)
    if deadline then
      deadlines[#deadlines + 1] = int(deadline)
      deadlines[#deadlines + 1] = task.id
    end
  end
  bulk('ZADD', DEADLINES, deadlines)
end

-- The state set that an id stands in, or nil; and its score.
local function locate(id)
  for _, set in ipairs({ PENDING, ACTIVE, SCHEDULED, RETRY, ARCHIVED, COMPLETED }) do
    local score = redis.call('ZSCORE', set, id)
    if score then
      return set, tonumber(score)
    end
  end
end

-- Who holds a lock: its id, mode, state set and record; nil where its holder has ended, cannot be used
-- or names another lock. A lock for a time is held whatever becomes of its task.
local function holder_in_force(key)
  local id, mode = holder_of(key)
  local set = id and locate(id)
  if mode == 'time' then
    return id, mode, set
  end
  if set and set ~= ARCHIVED and set ~= COMPLETED then
    local record = read_record(id, { 'kind', 'unique', 'replace_until', 'priority', 'lock_time' })
    if record and lock_of(record.unique) == key then
      return id, mode, set, record
    end
  end
end
