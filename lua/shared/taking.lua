-- How tasks take locks.

-- Gives a task that is due at `due` a lock, for as many ms after that, or for ever; `only_if` may be NX.
local function set_lock(lock, mode, id, lock_time, due, only_if)
  local args = { lock, mode .. ' ' .. id, only_if }
  if lock_time then
    args[#args + 1] = 'PX'
    args[#args + 1] = int(math.max(1, math.min(lock_time + math.max(0, due - now), 2 ^ 52)))
  end
  redis.call('SET', unpack(args))
end

-- The same with the lock that the task's record names.
local function take_lock(id, record, due, only_if)
  local lock, mode = lock_of(record.unique)
  set_lock(lock, mode, id, finite(record.lock_time), due, only_if)
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
    local record = read_record(id, { 'kind', 'unique', 'replace_until', 'enqueued_at' })
    if record and lock_of(record.unique) == lock then
      return id, mode, set, record
    end
  end
end
