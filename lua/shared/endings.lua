-- How tasks end that do not complete.

-- A task that is about to end, with what that will touch: its lock, and whether its kind has a
-- dead-letter hook. Only reads; a script calls it before it writes.
local hooked_kinds = {}
local function ending(id, record)
  local kind = record.kind
  if hooked_kinds[kind] == nil then
    hooked_kinds[kind] = redis.call('HGET', key('meta'), 'hook:' .. kind) ~= false
  end
  return {
    id = id, kind = kind, lock = lock_to_free(id, record.unique), has_hook = hooked_kinds[kind],
    last_error = record.last_error,
  }
end

-- The error of a task that is archived for its deadline: that, and what it failed with before.
local function deadline_error(last_error)
  local text = 'its deadline passed'
  if not last_error then
    return text
  end
  return string.sub(last_error, 1, #text) == text and last_error or text .. ': ' .. last_error
end

-- Archives endings, which the caller has removed from their state set: frees their locks, and notes that
-- the hooks of kinds that have one are owed, unless an operator archives.
local function archive(endings, reason)
  local ids, archived, owed = {}, {}, {}
  for i, task in ipairs(endings) do
    ids[i] = task.id
    redis.call('HSET', record_key(task.id), 'reason', reason)
    if reason == 'deadline_passed' then
      task.last_error = deadline_error(task.last_error)
      redis.call('HSET', record_key(task.id), 'last_error', task.last_error)
    end
    redis.call('HDEL', record_key(task.id), 'cancel')
    archived[#archived + 1] = now
    archived[#archived + 1] = task.id
    if task.lock then
      redis.call('DEL', task.lock)
    end
    if task.has_hook and reason ~= 'operator' then
      owed[#owed + 1] = now
      owed[#owed + 1] = task.id
    end
  end
  bulk('ZADD', key('archived'), archived)
  bulk('ZADD', key('hooks'), owed)
  tell_waiters(ids)
  count('archived', #endings)
  count('archived_' .. reason, #endings)
end
