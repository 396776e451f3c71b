#!lua flags=allow-oom
-- announce: keeps the index of live servers.
--
-- KEYS[1]  the index
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  the server's id
-- ARGV[3]  how long it counts as live from now, in ms; 0 takes it off
-- returns  nothing
--
-- Keeps: the index is bounded: servers whose time is over leave it, and it goes with the last of them.
-- Uses: values, time

bulk('ZREM', KEYS[1], redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 100))
if ARGV[3] == '0' then
  redis.call('ZREM', KEYS[1], ARGV[2])
else
  redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[2])
end
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
if last then
  redis.call('PEXPIRE', KEYS[1], int(math.max(1, tonumber(last) - now)))
end
