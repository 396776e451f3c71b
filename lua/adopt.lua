#!lua flags=allow-oom
-- adopt: nowhere → active, with a lease that is long over: a record that is in no set is treated
-- as a lost lease, and the recoverer runs it again or archives it. Where it still has a lease, its
-- holder may live, and gets the time to extend it.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  how long a lease lasts, in ms
-- ARGV[3…] ids of records
-- returns  how many were in no set
--
-- Keeps: a record exists if and only if its id is in one state set; `deadlines` has only waiting
-- tasks.
-- Uses: values, time, keys, types, counters, records

local expiry = now + tonumber(ARGV[2])
local ids, entries, seen = {}, {}, {}
for i = 3, #ARGV do
  local id = ARGV[i]
  if not seen[id] and not locate(id) and redis.call('EXISTS', record_key(id)) == 1 then
    ids[#ids + 1] = id
    entries[#entries + 1] = redis.call('HEXISTS', key('leases'), id) == 1 and expiry or 0
    entries[#entries + 1] = id
  end
  -- A scan may meet a key twice.
  seen[id] = true
end
check_types('deadlines')
bulk('ZADD', key('active'), entries)
bulk('ZREM', key('deadlines'), ids)
count('adopted', #ids)
return #ids
