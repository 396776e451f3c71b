#!lua flags=allow-oom
-- claim: pending → active, or → archived for what is past its deadline.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  the server that claims
-- ARGV[3]  how many tasks it has room for; 0 only hands the wake token on
-- ARGV[4]  how long the lease lasts, in ms
-- ARGV[5]  the most bytes to read; one task is always looked at
-- ARGV[6]  the time in ms after which nothing is claimed any more, or empty
-- ARGV[7]  the field of `meta` that notes one of the server's dead-letter hooks; empty if it has none
-- returns  { lease number, now in ms, 1 when more can be claimed now (2: once its hooks are
--            registered), the next due time in ms or '', the number of tasks, for each task: id, the number of
--            values that follow, its record's fields and values; the number of tasks set aside as malformed, their ids; and for each task
--            archived for its deadline: id, kind, last_error }: flat, because Redis takes longer for lists in lists
--
-- Keeps: `leases` has an entry for each id in `active`, of this call's number, which is larger than
-- every one before it; `deadlines` has only waiting tasks. Records are not written. Each lease notes
-- the score that this call's first task had in `pending`: a task that is handed back gets this score,
-- and so comes before every task that is not yet claimed.
-- Uses: values, time, keys, types, schema, wake, due, deadlines, counters, locks, waiters, broken, endings

-- What decides about a record: its size in bytes, its kind if it can be used, and those of its fields that
-- few have, or nil.
local function survey(record)
  -- What a field costs beside its bytes is counted as 256 of them: a record may have thousands.
  local size = 128 * #record
  local kind, payload, rare = nil, nil, nil
  for i = 1, #record, 2 do
    local field, value = record[i], record[i + 1]
    size = size + #field + #value
    if field == 'kind' then
      kind = value
    elseif field == 'payload' then
      payload = value
    elseif field == 'deadline' or field == 'start_before' or field == 'unique' or field == 'started_at'
        or field == 'last_error' then
      rare = rare or {}
      rare[field] = value
    end
  end
  return size, payload and kind, rare
end

local schema, paused, last_number, hook = unpack(redis.call('HMGET', key('meta'), 'schema', 'paused', 'lease', ARGV[7]))
check_schema(schema)
local server, room, lease_ms, byte_limit = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local due = next_due()
local reply = { 0, now, 0, due and int(due) or '', 0 }
if paused then
  reply[6] = 0
  return reply
end
-- Held up on its way: its server has given it up, and has looked for what it may have leased.
if ARGV[6] ~= '' and now > tonumber(ARGV[6]) then
  reply[3], reply[6] = 1, 0
  return reply
end

-- A queue that is new to it, or whose `meta` was lost: what dies there would owe no hook.
if room > 0 and ARGV[7] ~= '' and not hook then
  reply[3], reply[6] = 2, 0
  return reply
end

-- One more than there is room for: it says whether more are waiting.
local ids = redis.call('ZRANGE', key('pending'), 0, room)
local number, lease
local expiry = int(now + lease_ms)
if #ids > 0 then
  number = math.max((tonumber(last_number) or 0) + 1, now_us)
  lease = int(number) .. '@' .. server .. ' ' .. int(now) .. ' ' .. redis.call('ZSCORE', key('pending'), ids[1])
end
local leases, expiries, had_deadline = {}, {}, {}
local missing, malformed, expired, locks = {}, {}, {}, {}
local bytes, looked_at = 0, 0
for i = 1, math.min(#ids, room) do
  local id = ids[i]
  local record = redis.pcall('HGETALL', record_key(id))
  if record.err then
    if not string.find(record.err, '^WRONGTYPE') then
      return record
    end
    malformed[#malformed + 1] = id
  elseif #record == 0 then
    missing[#missing + 1] = id
  else
    local size, kind, rare = survey(record)
    if looked_at > 0 and bytes + size > byte_limit then
      break
    end
    bytes = bytes + size
    local deadline = kind and rare and wait_deadline(rare)
    if deadline then
      had_deadline[#had_deadline + 1] = id
    end
    if not kind then
      malformed[#malformed + 1] = id
    elseif deadline and deadline <= now then
      rare.kind = kind
      expired[#expired + 1] = ending(id, rare)
    else
      local at = #reply
      reply[at + 1] = id
      reply[at + 2] = #record
      for j = 1, #record do
        reply[at + 2 + j] = record[j]
      end
      leases[#leases + 1] = id
      leases[#leases + 1] = lease
      expiries[#expiries + 1] = expiry
      expiries[#expiries + 1] = id
      if rare and rare.unique and string.find(rare.unique, '^started:') then
        locks[#locks + 1] = lock_to_free(id, rare.unique)
      end
    end
  end
  looked_at = looked_at + 1
end

if #missing + #malformed + #expired > 0 then
  check_types('deadlines', 'archived', 'hooks')
end
if #leases > 0 then
  reply[1] = number
  redis.call('HSET', key('leases'), unpack(leases))
  -- Where this is of another type, nothing was done but the line before. To ask first would cost each claim.
  local noted = redis.pcall('ZADD', key('active'), unpack(expiries))
  if type(noted) == 'table' then
    for i = 1, #leases, 2 do
      redis.call('HDEL', key('leases'), leases[i])
    end
    return noted
  end
  redis.call('HSET', key('meta'), 'lease', int(number))
end
if looked_at > 0 then
  redis.call('ZREMRANGEBYRANK', key('pending'), 0, looked_at - 1)
  bulk('ZREM', key('deadlines'), had_deadline)
end
if #locks > 0 then
  redis.call('DEL', unpack(locks))
end
if #missing + #malformed > 0 then
  remove_broken('pending', missing, malformed)
end
if #expired > 0 then
  archive(expired, 'deadline_passed')
  count('expired', #expired)
end
if #ids > looked_at then
  wake()
  reply[3] = 1
end
reply[5] = #leases / 2
reply[#reply + 1] = #malformed
for _, id in ipairs(malformed) do
  reply[#reply + 1] = id
end
for _, task in ipairs(expired) do
  reply[#reply + 1] = task.id
  reply[#reply + 1] = task.kind
  reply[#reply + 1] = task.last_error
end
return reply
