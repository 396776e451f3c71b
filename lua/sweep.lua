#!lua flags=allow-oom
-- sweep: completed and archived → gone: what is past its retention, what the archive has too much, and the
-- oldest of both where Redis needs the memory.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  the most tasks to look at in each state
-- ARGV[3]  the most tasks the archive keeps
-- ARGV[4]  how long the archive keeps a task, in ms
-- ARGV[5]  for how long after its death a task is spared whose hook is owed and registered, in ms
-- ARGV[6]  how many of the oldest archived tasks to pass over: the spared ones of the calls before
-- ARGV[7]  how many bytes of completed tasks are to be freed
-- ARGV[8]  how many bytes of archived tasks are to be freed
-- returns  { completed tasks removed, archived tasks removed, { id and kind of each whose hook
--            was owed and is dropped }, tasks spared now,
--            1 when there is more to do, how many of the removed went before their time, { the bytes of these
--            that were completed, and archived } }
--
-- Keeps: the archive's caps, exactly, but for tasks whose hook is owed and will run: some server has it.
-- Uses: values, time, keys, sizes, types, counters, records

local limit, cap, age, spare = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local passed_over = tonumber(ARGV[6])
local to_free = { completed = tonumber(ARGV[7]), archived = tonumber(ARGV[8]) }
local freed, shed = { completed = 0, archived = 0 }, 0

-- Notes that a task goes whose time has not come.
local function shed_early(set, id)
  freed[set] = freed[set] + size_of(id)
  shed = shed + 1
end

local first_to_go = to_free.completed > 0 and '+inf' or now
local next_done = redis.call('ZRANGEBYSCORE', key('completed'), '-inf', first_to_go, 'WITHSCORES', 'LIMIT', 0, limit)
local done = {}
for i = 1, #next_done, 2 do
  local id, is_over = next_done[i], tonumber(next_done[i + 1]) <= now
  if not is_over then
    if freed.completed >= to_free.completed then
      break
    end
    shed_early('completed', id)
  end
  done[#done + 1] = id
end

local surplus = redis.call('ZCARD', key('archived')) - cap
local old = redis.call('ZRANGE', key('archived'), passed_over, passed_over + limit - 1, 'WITHSCORES')
local archived, spared, dropped, looked_at = {}, 0, {}, 0

-- The kind of a task, empty where that cannot be read, and whether some server has a hook for it.
local registered = {}
local function hooked_kind(id)
  local record = read_record(id, { 'kind' })
  local kind = record and record.kind or ''
  if registered[kind] == nil then
    registered[kind] = redis.call('HGET', key('meta'), 'hook:' .. kind) ~= false
  end
  return kind, registered[kind]
end

for i = 1, #old, 2 do
  local id, died = old[i], tonumber(old[i + 1])
  local is_over = passed_over + looked_at < surplus or died <= now - age
  if not is_over and freed.archived >= to_free.archived then
    break
  end
  looked_at = looked_at + 1
  local kind, is_hooked = nil, false
  if redis.call('ZSCORE', key('hooks'), id) then
    kind, is_hooked = hooked_kind(id)
  end
  if is_hooked and died > now - spare then
    spared = spared + 1
  else
    if not is_over then
      shed_early('archived', id)
    end
    archived[#archived + 1] = id
    if kind then
      dropped[#dropped + 1] = id
      dropped[#dropped + 1] = kind
    end
  end
end

check_types('hooks')
for set, ids in pairs({ completed = done, archived = archived }) do
  if #ids > 0 then
    local records = {}
    for i, id in ipairs(ids) do
      records[i] = record_key(id)
    end
    redis.call('UNLINK', unpack(records))
    bulk('ZREM', key(set), ids)
    bulk('ZREM', key('hooks'), ids)
  end
end
count('swept_completed', #done)
count('swept_archived', #archived)
count('shed', shed)
count('hooks_dropped', #dropped / 2)
local more = #done == limit or (looked_at > 0 and looked_at * 2 == #old)
return { #done, #archived, dropped, spared, more and 1 or 0, shed, { freed.completed, freed.archived } }
