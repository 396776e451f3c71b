#!lua flags=allow-oom
-- hooks_register: notes the kinds that have a dead-letter hook, so that whoever archives a task of
-- such a kind owes it, also a server that does not know the kind.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  how long that holds unless it is renewed, in ms (hooks_lapse)
-- ARGV[3…] kinds
-- returns  nothing
--
-- Keeps: a hook is owed by what Redis knows, and lost with no process.
-- Uses: values, time, keys

for i = 3, #ARGV do
  redis.call('HSET', key('meta'), 'hook:' .. ARGV[i], int(now + ARGV[2]))
end
