-- When a waiting task is given up, in ms, or nil: at its deadline, and before its first start also at
-- its `start_before`.
local function wait_deadline(record)
  local deadline = finite(record.deadline)
  local start_before = not record.started_at and finite(record.start_before)
  if start_before and (not deadline or start_before < deadline) then
    return start_before
  end
  return deadline
end
