-- The queue's counters: its totals, and those of the UTC day, which are kept for 90 days.

-- The UTC day of `now`, as yyyy-mm-dd: Hinnant's civil_from_days, because Redis has no os.date. A whole
-- division is `(a - a % b) / b`, which takes less time than a call of `math.floor`.
local function today()
  local z = (now - now % 86400000) / 86400000 + 719468
  local doe = z % 146097
  local era = (z - doe) / 146097
  local leaps = (doe - doe % 1460) / 1460 - (doe - doe % 36524) / 36524 + (doe - doe % 146096) / 146096
  local yoe = (doe - leaps - (doe - leaps) % 365) / 365
  local doy = doe - (365 * yoe + (yoe - yoe % 4) / 4 - (yoe - yoe % 100) / 100)
  local mp = (5 * doy + 2 - (5 * doy + 2) % 153) / 153
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02d', year, month, doy - (153 * mp + 2 - (153 * mp + 2) % 5) / 5 + 1)
end

-- Adds to a counter. One that has reached its end stays there: nothing about a counter may stop a task.
local function count(name, n)
  if n > 0 then
    local of_day = key('stats:' .. today())
    redis.pcall('HINCRBY', key('stats'), name, n)
    if redis.pcall('HINCRBY', of_day, name, n) == n then
      -- The counter's first of the day, and perhaps the key's.
      redis.pcall('EXPIRE', of_day, 7776000)
    end
  end
end
