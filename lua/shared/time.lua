-- The time of this call: ARGV[1] in µs, or Redis' own clock where that is empty.

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
