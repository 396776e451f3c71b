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
-- Uses: time, keys, counters, records, leases

local id, holder, note = unpack(ARGV, 2, 4)
local lease = redis.call('HGET', key('leases'), id)
if not lease then
  return GONE
end
if not is_held_by(lease, holder) then
  count('stale', 1)
  return STALE
end
if not read_record(id, { 'kind' }) then
  return GONE
end
redis.call('HSET', record_key(id), 'progress', note)
return DONE
