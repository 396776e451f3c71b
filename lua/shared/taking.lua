-- How tasks take locks.

-- For how long from now a task that is due at `due` may hold its lock, in ms: text, or nil for ever.
local function lock_span(lock_time, due)
  lock_time = finite(lock_time)
  return lock_time and int(math.max(1, math.min(lock_time + math.max(0, due - now), 2 ^ 52)))
end

-- Gives a task that is due at `due` the lock that its record names; `only_if` may be NX.
local function take_lock(id, record, due, only_if)
  local lock, mode = lock_of(record.unique)
  local args = { lock, mode .. ' ' .. id, only_if }
  local span = lock_span(record.lock_time, due)
  if span then
    args[#args + 1] = 'PX'
    args[#args + 1] = span
  end
  redis.call('SET', unpack(args))
end

-- Who holds a lock: its id, mode, state and record; nil where its holder has ended, cannot be used
-- or names another lock. A lock for a time is held whatever becomes of its task.
local function holder_in_force(lock)
  local id, mode = holder_of(lock)
  local set = id and locate(id)
  if mode == 'time' then
    return id, mode, set
  end
  if set and set ~= 'archived' and set ~= 'completed' then
    local record = read_record(id, { 'kind', 'unique', 'replace_until', 'priority', 'lock_time' })
    if record and lock_of(record.unique) == lock then
      return id, mode, set, record
    end
  end
end
