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
