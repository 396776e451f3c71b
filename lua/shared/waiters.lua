-- Those who wait for a task's end.

-- Tells those who wait for these tasks, who then look for themselves. Costs one EXISTS when nobody waits
-- for anything. May not fail: who waits also looks now and then, and a user who may not publish loses
-- nothing but the news.
local function tell_waiters(ids)
  if #ids > 0 and redis.call('EXISTS', key('waiters')) == 1 then
    for _, id in ipairs(ids) do
      if redis.pcall('ZREM', key('waiters'), id) == 1 then
        redis.pcall('PUBLISH', key('ended'), id)
      end
    end
  end
end
