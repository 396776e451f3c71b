#!lua flags=allow-oom
-- hooks_take: takes owed dead-letter hooks to run them now.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  the most hooks to take
-- ARGV[3]  for how long they are this server's, in ms
-- ARGV[4]  how many bytes are enough
-- ARGV[5…] the kinds whose hooks this server has
-- returns  { { id and empty kind of each hook dropped, because its task cannot be read }, 1 when more may be owed now, { id, not before, died at, { field, value, … }, … } }
--
-- Keeps: `hooks` has only archived tasks. A hook that is taken is owed until it is done: its *not
-- before* moves ahead, so that another server runs it if this one dies.
-- Uses: values, time, keys, counters, records

local limit, hold, byte_limit = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local known = {}
for i = 5, #ARGV do
  known[ARGV[i]] = true
end
local look_at = 50
local owed = redis.call('ZRANGEBYSCORE', key('hooks'), '-inf', now, 'LIMIT', 0, look_at)
local more = #owed == look_at
local taken, later, dropped = {}, {}, {}
local not_before = int(now + hold)
local bytes = 0
for _, id in ipairs(owed) do
  local died = redis.call('ZSCORE', key('archived'), id)
  local record = died and read_record(id, { 'kind' })
  if not record then
    dropped[#dropped + 1] = id
    dropped[#dropped + 1] = ''
  elseif not known[record.kind] then
    later[#later + 1] = now + 1000
    later[#later + 1] = id
  elseif #taken < 4 * limit and bytes < byte_limit then
    local fields = redis.call('HGETALL', record_key(id))
    -- As in a claim.
    bytes = bytes + 128 * #fields
    for i = 2, #fields, 2 do
      bytes = bytes + #fields[i]
    end
    taken[#taken + 1] = id
    taken[#taken + 1] = not_before
    taken[#taken + 1] = int(tonumber(died))
    taken[#taken + 1] = fields
  else
    more = true
  end
end
for i = 1, #taken, 4 do
  redis.call('ZADD', key('hooks'), not_before, taken[i])
end
-- Hooks of kinds that this server lacks are put off only where they fill more than half of this look, so
-- that the next look finds what is behind them. Otherwise they stay as they are: many servers that lack a
-- kind would keep putting its hooks off, and the server that has it would hardly find them.
if #owed == look_at and #later > look_at then
  bulk('ZADD', key('hooks'), later)
end
for i = 1, #dropped, 2 do
  redis.call('ZREM', key('hooks'), dropped[i])
end
count('hooks_dropped', #dropped / 2)
return { dropped, more and 1 or 0, taken }
