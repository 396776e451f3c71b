#!lua flags=allow-oom
-- hooks_done: ends this server's hold on dead-letter hooks.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2…] for each hook: id, the *not before* it was taken with, and what became of it: `done`,
--          `back` (not run to its end: owed at once) or a delay in ms until it is tried again
-- returns  how many were still held with that *not before*
--
-- Keeps: only the server that holds a hook ends it: another one may have taken it since.
-- Uses: time, keys, counters

local held, run = 0, 0
for at = 2, #ARGV, 3 do
  local id, not_before, what = unpack(ARGV, at, at + 2)
  local score = redis.call('ZSCORE', key('hooks'), id)
  if score and tonumber(score) == tonumber(not_before) then
    held = held + 1
    if what == 'done' then
      redis.call('ZREM', key('hooks'), id)
      run = run + 1
    else
      redis.call('ZADD', key('hooks'), now + (tonumber(what) or 0), id)
    end
  end
end
count('hooks_run', run)
return held
