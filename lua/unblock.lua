#!lua flags=allow-oom
-- unblock: ends a server's own wait for work.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  the server's id
-- ARGV[3]  for how long the server may still begin to wait, in ms
-- returns  nothing
--
-- Keeps: a token that nobody takes is gone after that time.
-- Uses: keys

local token = key('wake:' .. ARGV[2])
redis.call('LPUSH', token, '1')
redis.call('PEXPIRE', token, ARGV[3])
