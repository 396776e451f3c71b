-- What becomes of tasks whose record is missing or cannot be used.

-- Puts a record that cannot be used where it stops nobody: in the archive, or, when its key is no hash,
-- under another name. The caller has removed its id from its state set. Frees its lock last: what may
-- fail there must not leave the task in no set.
local function set_aside(id)
  local record = record_key(id)
  if redis.call('TYPE', record).ok == 'hash' then
    redis.call('HSET', record, 'reason', 'malformed', 'last_failed_at', int(now))
    redis.call('ZADD', key('archived'), now, id)
    local was_read, lock = pcall(lock_to_free, id, redis.call('HGET', record, 'unique'))
    if was_read and lock then
      redis.call('DEL', lock)
    end
  else
    redis.call('RENAME', record, key('malformed:' .. id))
  end
end

-- Removes ids whose record is missing or malformed from a state set (and from what goes with it), sets
-- the malformed ones aside, tells those who wait for them, and counts both. Both lists may be empty.
local function remove_broken(set, missing, malformed)
  for _, ids in ipairs({ missing, malformed }) do
    if #ids > 0 then
      bulk('ZREM', key(set), ids)
      bulk('ZREM', key('deadlines'), ids)
      if set == 'active' then
        bulk('HDEL', key('leases'), ids)
      end
    end
  end
  for _, id in ipairs(malformed) do
    set_aside(id)
  end
  tell_waiters(missing)
  tell_waiters(malformed)
  count('missing', #missing)
  count('malformed', #malformed)
end
