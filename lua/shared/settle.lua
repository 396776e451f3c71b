-- How leases end one by one, each with a look at its record: retry, archive, defer and release.
--
-- The scripts read each task of theirs into a table: its `id`, its lease `holder`, and `try`, the fields
-- and values that its try leaves in the record, nil when its handler was not called. Here it gets an
-- `outcome`, the script's reply to it: DONE, GONE or STALE, or a text where something else happened than
-- was asked:
--   deadline_passed  archived, because it would have been due after its deadline
--   cancelled        archived, because somebody cancelled it and its handler did not decide
--   operator         archived, because an operator did so while it ran
--   deleted          erased, because somebody cancelled it so
--   superseded       erased, because a newer task took its lock while it ran (Unique::replace)
--
-- ARGV[2] is empty when the lease's holder settles. A recoverer gives its clock-skew cutoff in ms: then
-- a lease is ended only while it is past its expiry by that much, is still the one the recoverer saw, and
-- no grace after an outage is in force, so that any number of recoverers may race.

-- Whether a recoverer may end this lease now.
local function is_surely_lost(expiry, skew, grace_until)
  return now >= grace_until and (tonumber(expiry) or 0) <= now - skew
end

-- Ends the leases of these tasks, and removes the broken and the superseded ones. Returns the others that
-- were ended, each now with its `record`, its `ending`, and `claimed_at` and `place` of its lease. `...`:
-- the sets that the script then writes.
local function end_leases(tasks, ...)
  local skew = tonumber(ARGV[2])
  local ids = {}
  for i, task in ipairs(tasks) do
    ids[i] = task.id
  end
  local leases = redis.call('HMGET', key('leases'), unpack(ids))
  local expiries, grace_until = {}, 0
  if skew then
    expiries = redis.call('ZMSCORE', key('active'), unpack(ids))
    grace_until = finite(redis.call('HGET', key('meta'), 'grace_until')) or 0
  end

  local ended, superseded, ended_ids, stale = {}, {}, {}, 0
  local broken = { missing = {}, malformed = {} }
  -- Whether something else may become of a task than the script wants.
  local has_other_ends = false
  local seen = {}
  for i, task in ipairs(tasks) do
    local id, lease, expiry = task.id, leases[i], expiries[i]
    local is_ours
    if skew then
      -- A recoverer also finds ids in `active` that nobody holds, with no lease or one that makes no sense.
      is_ours = (lease or expiry) and holder_in(lease) == task.holder
    else
      is_ours = lease and is_held_by(lease, task.holder)
    end
    if seen[id] or not (lease or is_ours) then
      task.outcome = GONE
    elseif not is_ours or (skew and not is_surely_lost(expiry, skew, grace_until)) then
      task.outcome = STALE
      stale = stale + (skew and 0 or 1)
    else
      seen[id] = true
      local record, problem = read_record(id)
      if record then
        local claimed_at, place = string.match(lease or '', '^%S+ (%d+) (%S+)$')
        task.outcome = DONE
        task.record, task.ending = record, ending(id, record)
        task.claimed_at, task.place = claimed_at, finite(place)
        if record.superseded then
          task.outcome = 'superseded'
          superseded[#superseded + 1] = task.ending
        else
          ended[#ended + 1] = task
        end
        ended_ids[#ended_ids + 1] = id
        has_other_ends = has_other_ends or record.cancel or record.superseded or record.deadline or record.start_before
      else
        task.outcome = GONE
        table.insert(broken[problem], id)
        has_other_ends = true
      end
    end
  end

  check_types(...)
  if has_other_ends then
    check_types('deadlines', 'archived', 'hooks')
  end
  if #ended_ids > 0 then
    redis.call('ZREM', key('active'), unpack(ended_ids))
    redis.call('HDEL', key('leases'), unpack(ended_ids))
  end
  remove_broken('active', broken.missing, broken.malformed)
  erase(superseded, 'superseded')
  count('stale', stale)
  count('recovered', skew and #ended_ids or 0)
  return ended
end

-- Writes what a task's try leaves in the record: the fields of `try`, and `started_at` of the first start.
-- A row of lost leases or of payloads that could not be decoded ends, unless this try was one more of it:
-- then `lost` or `undecodable` says how long it is, else it is empty. A cancel is over in any case.
local function write_try(task, lost, undecodable)
  local record, fields = task.record, task.try
  if record.cancel then
    redis.call('HDEL', record_key(task.id), 'cancel')
  end
  if not fields then
    return
  end
  if not record.started_at and task.claimed_at then
    record.started_at = task.claimed_at
    fields[#fields + 1] = 'started_at'
    fields[#fields + 1] = task.claimed_at
  end
  if lost ~= '' then
    fields[#fields + 1] = 'lost'
    fields[#fields + 1] = lost
  elseif record.lost then
    redis.call('HDEL', record_key(task.id), 'lost')
  end
  if undecodable ~= '' then
    fields[#fields + 1] = 'undecodable'
    fields[#fields + 1] = undecodable
  elseif record.undecodable then
    redis.call('HDEL', record_key(task.id), 'undecodable')
  end
  if #fields > 0 then
    redis.call('HSET', record_key(task.id), unpack(fields))
  end
end

-- The outcome of each way to cancel an active task whose handler does not decide.
local OUTCOMES = { archive = 'cancelled', operator = 'operator', delete = 'deleted' }

-- Archives or erases those of these tasks whose cancel says so, and returns the others.
local function settle_cancelled(ended)
  local others = {}
  local endings = { cancelled = {}, operator = {}, deleted = {} }
  for _, task in ipairs(ended) do
    local outcome = OUTCOMES[task.record.cancel]
    if outcome then
      task.outcome = outcome
      table.insert(endings[outcome], task.ending)
      if outcome ~= 'deleted' then
        write_try(task, '', '')
      end
    else
      others[#others + 1] = task
    end
  end
  archive(endings.cancelled, 'cancelled')
  archive(endings.operator, 'operator')
  erase(endings.deleted, 'deleted')
  return others
end

-- Locks that end with a task's start are taken again by tasks that wait once more, where they are free.
-- Each is due at `task.due`, in ms.
local function retake_locks(tasks)
  for _, task in ipairs(tasks) do
    local _, mode = lock_of(task.record.unique)
    if mode == 'started' then
      take_lock(task.id, task.record, task.due, 'NX')
    end
  end
end

local function outcomes_of(tasks)
  local outcomes = {}
  for i, task in ipairs(tasks) do
    outcomes[i] = task.outcome
  end
  return outcomes
end
