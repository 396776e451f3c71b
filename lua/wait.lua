#!lua flags=allow-oom
-- wait: notes that somebody waits for a task's end, and looks at it.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  id
-- ARGV[3]  for how long, in ms
-- returns  { state, result, reason, last_error }: state is `completed`, `archived`, `gone` or
--          `waiting`; the rest is empty where it does not apply
--
-- Keeps: `waiters` is bounded, because each that comes removes some of those whose time is over.
-- Uses: values, time, keys, records

local set = locate(ARGV[2])
if not set then
  return { 'gone', '', '', '' }
end
if set ~= 'completed' and set ~= 'archived' then
  local over = redis.call('ZRANGEBYSCORE', key('waiters'), '-inf', now, 'LIMIT', 0, 100)
  bulk('ZREM', key('waiters'), over)
  redis.call('ZADD', key('waiters'), 'GT', now + tonumber(ARGV[3]), ARGV[2])
  return { 'waiting', '', '', '' }
end
local fields = redis.call('HMGET', record_key(ARGV[2]), 'result', 'reason', 'last_error')
return { set, fields[1] or '', fields[2] or '', fields[3] or '' }
