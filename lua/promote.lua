#!lua flags=allow-oom
-- promote: scheduled and retry → pending, for what is due.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  the most tasks to move
-- returns  { tasks moved, 1 when more are due now, 1 when deadlines of waiting tasks have passed, now
--            in ms, the next due time in ms or '', { ids set aside as malformed } }
--
-- Keeps: a task is never pending before its due time, and is in one set at every moment.
-- Uses: values, time, keys, types, wake, score, due, counters, records, locks, waiters, broken

local limit = tonumber(ARGV[2])
local moves = {}
for _, set in ipairs({ 'scheduled', 'retry' }) do
  local move = { set = set, ids = {}, priorities = {}, missing = {}, malformed = {} }
  local due = limit > 0 and redis.call('ZRANGEBYSCORE', key(set), '-inf', now, 'LIMIT', 0, limit) or {}
  for _, id in ipairs(due) do
    local record, problem = read_record(id, { 'kind', 'priority' })
    if record then
      move.ids[#move.ids + 1] = id
      move.priorities[#move.ids] = record.priority
    else
      local list = move[problem]
      list[#list + 1] = id
    end
  end
  limit = limit - #due
  moves[#moves + 1] = move
end

check_types('pending', 'retry', 'deadlines', 'archived')
local moved, pending, malformed = 0, {}, {}
for _, move in ipairs(moves) do
  for i, id in ipairs(move.ids) do
    moved = moved + 1
    pending[#pending + 1] = pending_score(moved, finite(move.priorities[i]))
    pending[#pending + 1] = id
  end
  if #move.ids > 0 then
    bulk('ZREM', key(move.set), move.ids)
  end
  remove_broken(move.set, move.missing, move.malformed)
  for _, id in ipairs(move.malformed) do
    malformed[#malformed + 1] = id
  end
end
bulk('ZADD', key('pending'), pending)
if moved > 0 then
  wake()
end
local function passed(set)
  return redis.call('ZCOUNT', key(set), '-inf', now) > 0
end
local due = next_due()
return {
  moved, (passed('scheduled') or passed('retry')) and 1 or 0, passed('deadlines') and 1 or 0, now, due and int(due) or '',
  malformed,
}
