-- Shared by the scripts that end leases one by one and look at each record: retry, archive, defer
-- and release. Stands after base.lua and ends.lua.
--
-- ARGV[2] is empty when the lease's holder settles. A recoverer gives its clock-skew cutoff in ms:
-- then a lease is ended only while it is past its expiry by that much, is still the one the recoverer
-- saw, and no grace after an outage is in force, so that any number of recoverers may race.

-- The tasks of this call, `width` arguments each from ARGV[first] on, of which the first two are id
-- and lease holder. Answers a code for each task, and the list of those whose lease ends now, each
-- with its record, `ending`, `claimed_at` and `place`. Removes broken ones.
local function end_leases(first, width)
  local skew = tonumber(ARGV[2])
  local ids = {}
  for at = first, #ARGV, width do
    ids[#ids + 1] = ARGV[at]
  end
  local leases = redis.call('HMGET', LEASES, unpack(ids))
  local expiries, grace_until = {}, 0
  if skew then
    expiries = redis.call('ZMSCORE', ACTIVE, unpack(ids))
    grace_until = tonumber(redis.call('HGET', META, 'grace_until') or 0)
  end

  local answers, ended, ended_ids, missing, malformed, seen, stale = {}, {}, {}, {}, {}, {}, 0
  for i, id in ipairs(ids) do
    local at = first + (i - 1) * width
    local holder, lease = ARGV[at + 1], leases[i]
    local ours
    if lease then
      ours = string.sub(lease, 1, #holder + 1) == holder .. ' '
    else
      ours = skew and holder == '' and expiries[i]
    end
    if seen[id] or not (lease or ours) then
      answers[i] = GONE
    elseif not ours or (skew and (now < grace_until or tonumber(expiries[i] or 0) > now - skew)) then
      answers[i] = STALE
      stale = stale + (skew and 0 or 1)
    else
      seen[id] = true
      local record, problem = read_record(id)
      answers[i] = record and DONE or GONE
      if record then
        local claimed_at, place = string.match(lease or '', '^%S+ (%d+) (%S+)$')
        place = finite(place) and place
        ended[#ended + 1] = {
          i = i, id = id, at = at + 2, record = record, ending = ending(id, record), claimed_at = claimed_at, place = place,
        }
        ended_ids[#ended_ids + 1] = id
      elseif problem == 'missing' then
        missing[#missing + 1] = id
      else
        malformed[#malformed + 1] = id
      end
    end
  end

  if #ended_ids > 0 then
    redis.call('ZREM', ACTIVE, unpack(ended_ids))
    redis.call('HDEL', LEASES, unpack(ended_ids))
  end
  remove_broken(ACTIVE, missing, malformed)
  count({ stale = stale })
  return answers, ended
end

-- What a try leaves in the record, with more fields of the caller's: `started_at` of the first start
-- stays, a cancel is over, and a row of lost leases or of undecodable payloads ends unless this try was
-- one more of it.
local function write_try(task, lost, fields, undecodable)
  local key = record_key(task.id)
  if not task.record.started_at and task.claimed_at then
    task.record.started_at = task.claimed_at
    fields[#fields + 1] = 'started_at'
    fields[#fields + 1] = task.claimed_at
  end
  if lost ~= '' then
    fields[#fields + 1] = 'lost'
    fields[#fields + 1] = lost
  elseif task.record.lost then
    redis.call('HDEL', key, 'lost')
  end
  if undecodable and undecodable ~= '' then
    fields[#fields + 1] = 'undecodable'
    fields[#fields + 1] = undecodable
  elseif task.record.undecodable then
    redis.call('HDEL', key, 'undecodable')
  end
  if task.record.cancel then
    redis.call('HDEL', key, 'cancel')
  end
  if #fields > 0 then
    redis.call('HSET', key, unpack(fields))
  end
end

-- Whoever cancelled a task may have said what becomes of it if its handler does not decide: archives
-- or deletes those tasks, and answers the others. `try_of` answers the fields that a task's try leaves
-- in its record, or nil when its handler was not called.
local function without_cancelled(answers, ended, try_of)
  local rest, archived, by_operator, deleted = {}, {}, {}, {}
  local lists = { archive = archived, operator = by_operator, delete = deleted }
  local words = { archive = 'cancelled', operator = 'operator', delete = 'deleted' }
  for _, task in ipairs(ended) do
    local list = lists[task.record.cancel]
    if list then
      list[#list + 1] = task.ending
      answers[task.i] = words[task.record.cancel]
      local fields = list ~= deleted and try_of(task)
      if fields then
        write_try(task, '', fields)
      end
    else
      rest[#rest + 1] = task
    end
  end
  bury(archived, 'cancelled')
  bury(by_operator, 'operator', true)
  erase(deleted)
  return rest
end

-- Answers what a failed try leaves in the record, for tasks whose error is argument `at` of theirs.
local function failed_with(at)
  return function(task)
    return { 'last_error', ARGV[task.at + at], 'last_failed_at', int(now) }
  end
end

-- Answers what a try that did not fail leaves in the record, for tasks whose argument `at` is 1 when
-- their handler was called.
local function called_by(at)
  return function(task)
    return ARGV[task.at + at] == '1' and {} or nil
  end
end

-- Locks that end with a task's start are taken again by tasks that wait once more without having
-- failed, where they are free. Each is due at `task.due`, in ms.
local function retake_locks(tasks)
  for _, task in ipairs(tasks) do
    local _, mode = lock_of(task.record.unique)
    if mode == 'started' then
      take_lock(task.id, task.record, task.due, 'NX')
    end
  end
end
