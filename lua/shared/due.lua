-- When a queue has to be looked at again.

-- When the next scheduled or retried task is due or the next deadline of a waiting task passes, in ms;
-- nil when there is none. Kept within whole numbers that can be printed and read: a score that somebody
-- wrote by hand must not spoil the reply.
local function next_due()
  -- One look for the common case, because three cost a tenth of a claim of one task.
  if redis.call('EXISTS', key('scheduled'), key('retry'), key('deadlines')) == 0 then
    return nil
  end
  local first = nil
  for _, name in ipairs({ 'scheduled', 'retry', 'deadlines' }) do
    local score = tonumber(redis.call('ZRANGE', key(name), 0, 0, 'WITHSCORES')[2])
    if score and (not first or score < first) then
      first = score
    end
  end
  return first and math.max(0, math.min(first, 2 ^ 53))
end
