#!lua flags=no-writes
-- look: one task, as it is.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  id
-- returns  { state ('' when there is no such task), its score, from 0 to 2^53, its lease or '', { field, value, … } }
--
-- Keeps: reads only.
-- Uses: values, keys, records

local set, score = locate(ARGV[2])
if not set then
  return { '', '', '', {} }
end
local record = redis.pcall('HGETALL', record_key(ARGV[2]))
return {
  set, int(math.min(math.max(finite(score) or score, 0), 9007199254740992)), redis.call('HGET', key('leases'), ARGV[2]) or '',
  record.err and {} or record,
}
