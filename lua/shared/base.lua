-- What every script may use. Of the statements in this folder, those that a script uses stand between
-- its `#!lua` line and its own text, and no others, because creating what is not used takes time in each
-- call. Each begins with `local` at the left margin, and defines one thing.
--
-- KEYS[1] is the queue's base key, such as `windlass:{default}`; every key of the queue begins with
-- it, and its hash tag keeps them all in one slot of a cluster. ARGV[1] is the time in µs, or empty
-- for Redis' own clock. A script reads first, then decides, then writes: Redis does not roll back.

local SCHEMA = 1
local base = KEYS[1]
local META = base .. ':meta'
local WAKE = base .. ':wake'
local LEASES = base .. ':leases'
local PENDING = base .. ':pending'
local ACTIVE = base .. ':active'
local RETRY = base .. ':retry'
local SCHEDULED = base .. ':scheduled'
local ARCHIVED = base .. ':archived'
local COMPLETED = base .. ':completed'
local DEADLINES = base .. ':deadlines'
local HOOKS = base .. ':hooks'
local WAITERS = base .. ':waiters'
local DONE = 1
local GONE = 0
local STALE = -1
local HEAD_START_US = 60000000

local now_us
if ARGV[1] == '' then
  local time = redis.call('TIME')
  now_us = time[1] * 1000000 + time[2]
else
  now_us = tonumber(ARGV[1])
end
local now = math.floor(now_us / 1000)

-- The time in this many ms: rounded up, because nothing may be due early.
local function after(ms)
  return math.ceil(now_us / 1000) + ms
end

-- Lua prints large numbers in scientific notation.
local function int(n)
  return string.format('%.0f', n)
end

-- A record's field as a number, or nil where it is none. NaN and infinities are none: they would spoil
-- what is computed from them, which Redis refuses only after other writes.
local function finite(text)
  local n = tonumber(text or nil)
  return n and n - n == 0 and n or nil
end

local function record_key(id)
  return base .. ':t:' .. id
end

-- `unpack` and Redis' Lua stack take only so many values at once; 1,000 is even, so pairs stay whole.
local function bulk(command, key, args)
  for first = 1, #args, 1000 do
    redis.call(command, key, unpack(args, first, math.min(first + 999, #args)))
  end
end

-- Named fields of `meta`, after checking that this script knows the queue's layout.
local function read_meta(...)
  local values = redis.call('HMGET', META, 'schema', ...)
  if values[1] and tonumber(values[1]) ~= SCHEMA then
    error({ err = 'WINDLASSSCHEMA the queue has schema ' .. values[1] .. ', this client knows ' .. SCHEMA })
  end
  return values
end

-- Leaves at most one token that says "there is work".
local function wake()
  if redis.call('EXISTS', WAKE) == 0 then
    redis.call('LPUSH', WAKE, '1')
  end
end

-- When the next scheduled or retried task is due or the next deadline of a waiting task passes, in
-- ms; nil when there is none. Within what can be printed and read as a whole number: a score that
-- somebody wrote by hand must not spoil the reply.
local function next_due()
  -- One look for the common case, because three cost a tenth of a claim of one task.
  if redis.call('EXISTS', SCHEDULED, RETRY, DEADLINES) == 0 then
    return nil
  end
  local first = nil
  for _, set in ipairs({ SCHEDULED, RETRY, DEADLINES }) do
    local score = tonumber(redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2])
    if score and (not first or score < first) then
      first = score
    end
  end
  return first and math.max(0, math.min(first, 2 ^ 53))
end

-- The UTC day of `now`, as yyyy-mm-dd: Hinnant's civil_from_days, because Redis has no os.date.
local function day()
  local z = math.floor(now / 86400000) + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02d', year, month, doy - math.floor((153 * mp + 2) / 5) + 1)
end

-- Adds to the totals and to the day's counters, which are kept for 90 days. A counter that has
-- reached its end stays there: it must not stop a task.
local function count(counters)
  local total, today = base .. ':stats', nil
  for name, n in pairs(counters) do
    if n > 0 then
      today = today or total .. ':' .. day()
      redis.pcall('HINCRBY', total, name, n)
      if redis.pcall('HINCRBY', today, name, n) == n then
        -- The counter's first of the day, and perhaps the key's.
        redis.call('EXPIRE', today, 7776000)
      end
    end
  end
end

-- The fields of a record that decide where its task goes. Not the payload, which may be large.
local DECIDING = {
  'kind', 'retried', 'max_retry', 'priority', 'started_at', 'lost', 'deadline', 'start_before', 'retention',
  'unique', 'lock_time', 'cancel', 'undecodable',
}

-- Reads these fields (or `fields`) of a record; answers them by name, or nil and 'missing' or
-- 'malformed'. Only a read that succeeded and found nothing means missing; an error that is not
-- about the record aborts.
local function read_record(id, fields)
  fields = fields or DECIDING
  local values = redis.pcall('HMGET', record_key(id), unpack(fields))
  if values.err then
    if string.find(values.err, '^WRONGTYPE') then
      return nil, 'malformed'
    end
    error({ err = values.err })
  end
  local record = {}
  for i, field in ipairs(fields) do
    record[field] = values[i] or nil
  end
  if record.kind then
    return record
  end
  return nil, redis.call('EXISTS', record_key(id)) == 0 and 'missing' or 'malformed'
end

-- The lock that a record's field `unique` names: its key and its mode (done, started, time, replace).
local function lock_of(unique)
  if unique then
    local mode, digest = string.match(unique, '^(%a+):(.*)$')
    return base .. ':unique:' .. (digest or ''), mode
  end
end

-- Who holds a lock: id and mode, or nil.
local function holder_of(key)
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then
    -- What is no string holds nothing.
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
  local key, mode = lock_of(unique)
  if key and mode ~= 'time' and holder_of(key) == id then
    return key
  end
end

-- Puts a record that cannot be used where it stops nobody: in the archive, or, when its key is no
-- hash, under another name. The caller has removed its id from the set it stood in. Frees its lock
-- last: what may fail there must not leave the task nowhere.
local function set_aside(id)
  local key = record_key(id)
  if redis.call('TYPE', key).ok == 'hash' then
    redis.call('HSET', key, 'reason', 'malformed', 'last_failed_at', int(now))
    redis.call('ZADD', ARCHIVED, int(now), id)
    local read, lock = pcall(lock_to_free, id, redis.call('HGET', key, 'unique'))
    if read and lock then
      redis.call('DEL', lock)
    end
  else
    redis.call('RENAME', key, base .. ':malformed:' .. id)
  end
end

-- Removes ids whose record is missing or malformed from a state set (and from what goes with it),
-- sets the malformed ones aside, and counts both. Both lists may be empty.
local function remove_broken(set, missing, malformed)
  for _, list in ipairs({ missing, malformed }) do
    if #list > 0 then
      bulk('ZREM', set, list)
      bulk('ZREM', DEADLINES, list)
      if set == ACTIVE then
        bulk('HDEL', LEASES, list)
      end
    end
  end
  for _, id in ipairs(malformed) do
    set_aside(id)
  end
  count({ missing = #missing, malformed = #malformed })
end

-- The score of a task that becomes pending as the i-th of its batch.
local function pending_score(i, priority)
  return int(now_us + i - (finite(priority) or 0) * HEAD_START_US)
end
