#!lua flags=allow-oom
-- progress: active → active, with a note of how far its handler has come.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  id
-- ARGV[3]  lease holder (`number@server`)
-- ARGV[4]  the note
-- returns  1 (done), 0 (there is no such lease or no record) or -1 (another lease lives)
--
-- Keeps: a record is never made, and only written under its current lease.

local lease, holder = redis.call('HGET', LEASES, ARGV[2]), ARGV[3] .. ' '
if not lease then
  return GONE
end
if string.sub(lease, 1, #holder) ~= holder then
  count({ stale = 1 })
  return STALE
end
if not read_record(ARGV[2], { 'kind' }) then
  return GONE
end
redis.call('HSET', record_key(ARGV[2]), 'progress', ARGV[4])
return DONE
