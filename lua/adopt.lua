#!lua flags=allow-oom
-- adopt: nowhere → active, with a lease that is long over: a record that stands in no set is treated
-- as a lost lease, and the recoverer runs it again or archives it. Where it still has a lease, its
-- holder may live, and gets the time to extend it.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  how long a lease lasts, in ms
-- ARGV[3…] ids of records
-- returns  how many stood in no set
--
-- Keeps: a record exists if and only if its id stands in one state set.

local expiry = int(now + tonumber(ARGV[2]))
local strays = {}
for i = 3, #ARGV do
  if not locate(ARGV[i]) and redis.call('EXISTS', record_key(ARGV[i])) == 1 then
    strays[#strays + 1] = redis.call('HEXISTS', LEASES, ARGV[i]) == 1 and expiry or 0
    strays[#strays + 1] = ARGV[i]
  end
end
bulk('ZADD', ACTIVE, strays)
count({ adopted = #strays / 2 })
return #strays / 2
