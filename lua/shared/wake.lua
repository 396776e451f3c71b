-- Leaves at most one token that says "there is work".
local function wake()
  local token = key('wake')
  if redis.call('EXISTS', token) == 0 then
    redis.call('LPUSH', token, '1')
  end
end
