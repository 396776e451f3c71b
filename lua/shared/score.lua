-- The score of a task that becomes pending as the n-th of its call.
local function pending_score(n, priority)
  local HEAD_START_US = 60000000
  return now_us + n - (priority or 0) * HEAD_START_US
end
