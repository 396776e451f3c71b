-- Whose a lock is, and when it is freed.

-- The lock that a record's field `unique` names: its key and its mode (done, started, time, replace); nil
-- where it names none.
local function lock_of(unique)
  local mode, name = string.match(unique or '', '^(%a+):(.+)$')
  if mode then
    return key('unique:' .. name), mode
  end
end

-- Who holds a lock: id and mode, or nil.
local function holder_of(lock)
  local value = redis.pcall('GET', lock)
  if type(value) == 'table' then
    -- A key of another type holds nothing.
    if not string.find(value.err, '^WRONGTYPE') then
      error({ err = value.err })
    end
  elseif value then
    local mode, id = string.match(value, '^(%a+) (.*)$')
    return id, mode
  end
end

-- The key of the lock that a task frees when it ends: a lock for a time outlives its task.
local function lock_to_free(id, unique)
  local lock, mode = lock_of(unique)
  if lock and mode ~= 'time' and holder_of(lock) == id then
    return lock
  end
end
