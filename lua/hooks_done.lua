#!lua flags=allow-oom
-- hooks_done: ends this server's hold on dead-letter hooks.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2…] for each hook: id, the *not before* it was taken with, and what became of it: `done`,
--          `dropped` (it cannot run), `back` (not run to its end: owed at once) or a delay in ms until it is
--          tried again
-- returns  how many were still held with that *not before*
--
-- Keeps: only the server that holds a hook ends it: another one may have taken it since. A record knows how
-- often its hook failed.
-- Uses: values, time, keys, counters, records

local done, dropped, owed, failed, held, seen = {}, {}, {}, {}, 0, {}
for at = 2, #ARGV, 3 do
  local id, not_before, what = unpack(ARGV, at, at + 2)
  local score = redis.call('ZSCORE', key('hooks'), id)
  if not seen[id] and score and tonumber(score) == tonumber(not_before) then
    seen[id] = true
    held = held + 1
    if what == 'done' then
      done[#done + 1] = id
    elseif what == 'dropped' then
      dropped[#dropped + 1] = id
    else
      owed[#owed + 1] = now + (tonumber(what) or 0)
      owed[#owed + 1] = id
      local record = what ~= 'back' and read_record(id, { 'kind', 'hook_failed' })
      if record then
        failed[id] = (finite(record.hook_failed) or 0) + 1
      end
    end
  end
end
bulk('ZREM', key('hooks'), done)
bulk('ZREM', key('hooks'), dropped)
bulk('ZADD', key('hooks'), owed)
for id, times in pairs(failed) do
  redis.call('HSET', record_key(id), 'hook_failed', int(times))
end
count('hooks_run', #done)
count('hooks_dropped', #dropped)
return held
