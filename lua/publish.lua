#!lua flags=allow-oom
-- publish: a server's record, readable with HGETALL, which vanishes when the server stops renewing it.
--
-- KEYS[1]  the server's key
-- ARGV[1]  empty
-- ARGV[2]  how long the record lives, in ms
-- ARGV[3…] fields and values
-- returns  nothing
--
-- Keeps: also a server of a full Redis can be seen.

redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
