-- Deletes endings, which the caller has removed from their state set, with their records, and counts them.
local function erase(endings, counter)
  local ids = {}
  for i, task in ipairs(endings) do
    ids[i] = task.id
    redis.call('UNLINK', record_key(task.id))
    if task.lock then
      redis.call('DEL', task.lock)
    end
  end
  bulk('ZREM', key('hooks'), ids)
  tell_waiters(ids)
  count(counter, #endings)
end
