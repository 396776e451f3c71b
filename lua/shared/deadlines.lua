-- When waiting tasks are given up.

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

-- Notes the deadlines of tasks that begin to wait, each with its `id` and `record`.
local function note_deadlines(tasks)
  local deadlines = {}
  for _, task in ipairs(tasks) do
    local deadline = wait_deadline(task.record)
    if deadline then
      deadlines[#deadlines + 1] = deadline
      deadlines[#deadlines + 1] = task.id
    end
  end
  bulk('ZADD', key('deadlines'), deadlines)
end
