#!lua flags=allow-oom
-- claim: pending → active, or → archived for what is past its deadline.
--
-- KEYS[1]  the queue's base key
-- ARGV[1]  time in µs, or empty
-- ARGV[2]  the server that claims
-- ARGV[3]  how many tasks it has room for; 0 only hands the wake token on
-- ARGV[4]  how long the lease lasts, in ms
-- ARGV[5]  the most bytes to read; one task is always looked at
-- returns  { lease number, now in ms, 1 when more can be claimed now, the next due time in ms or '', the
--            number of tasks, for each task: id, the number of values that follow, its record's fields
--            and values; the number of tasks set aside as malformed, their ids; and for each task
--            archived for its deadline: id, kind }: flat, because Redis takes longer for lists in lists
--
-- Keeps: `leases` has an entry for each id in `active`, of this call's number, which is larger than
-- every one before it; `deadlines` has only waiting tasks. The record is read and not written. The
-- lease remembers the place of the call's first task: all tasks that are handed back go there, ahead
-- of every task not yet claimed.

-- What becomes of tasks beside their claim: reads it, and answers a function that writes it.
local function aside(missing, malformed, expired, locked) -- seldom
  local endings, locks = {}, {}
  for i, task in ipairs(expired) do
    endings[i] = ending(task.id, task)
  end
  for _, task in ipairs(locked) do
    locks[#locks + 1] = lock_to_free(task.id, task.unique)
  end
  return function()
    if #locks > 0 then
      redis.call('DEL', unpack(locks))
    end
    remove_broken(PENDING, missing, malformed)
    bury(endings, 'deadline_passed')
    count({ expired = #endings })
  end
end

local meta = read_meta('paused', 'lease')
local server, room, lease_ms, byte_limit = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local due = next_due()
local reply_due = due and int(due) or ''
if meta[2] then
  return { 0, now, 0, reply_due, 0, 0 }
end

-- One more than there is room for: it says whether more are waiting.
local ids = redis.call('ZRANGE', PENDING, 0, room)
local number, number_text, lease, expiry = 0, nil, nil, nil
if #ids > 0 then
  number = math.max((tonumber(meta[3]) or 0) + 1, now_us)
  number_text = int(number)
  lease = number_text .. '@' .. server .. ' ' .. int(now) .. ' ' .. redis.call('ZSCORE', PENDING, ids[1])
  expiry = int(now + lease_ms)
end
local reply, leases, expiries, had_deadline = { 0, now, 0, reply_due, 0 }, {}, {}, {}
local missing, malformed, expired, locked = {}, {}, {}, {}
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
    -- What a field costs beside its bytes is counted as 64 of them: a record may have thousands.
    local size = 32 * #record
    local kind, payload, special
    for i = 1, #record, 2 do
      local field, value = record[i], record[i + 1]
      size = size + #field + #value
      if field == 'kind' then
        kind = value
      elseif field == 'payload' then
        payload = value
      elseif field == 'deadline' or field == 'start_before' or field == 'unique' or field == 'started_at' then
        special = special or { id = id }
        special[field] = value
      end
    end
    if looked_at > 0 and bytes + size > byte_limit then
      break
    end
    bytes = bytes + size
    if not (kind and payload) then
      malformed[#malformed + 1] = id
    else
      local deadline = special and wait_deadline(special)
      if deadline and deadline <= now then
        special.kind = kind
        expired[#expired + 1] = special
      else
        local at = #reply
        reply[at + 1] = id
        reply[at + 2] = #record
        for i = 1, #record do
          reply[at + 2 + i] = record[i]
        end
        leases[#leases + 1] = id
        leases[#leases + 1] = lease
        expiries[#expiries + 1] = expiry
        expiries[#expiries + 1] = id
        if special and special.unique and string.find(special.unique, '^started:') then
          locked[#locked + 1] = special
        end
      end
      if deadline then
        had_deadline[#had_deadline + 1] = id
      end
    end
  end
  looked_at = looked_at + 1
end
local write_aside = #missing + #malformed + #expired + #locked > 0 and aside(missing, malformed, expired, locked)

-- The leases first: where their key is of another type, the tasks stay pending.
if #leases > 0 then
  reply[1] = number
  redis.call('HSET', META, 'lease', number_text)
  bulk('HSET', LEASES, leases)
  bulk('ZADD', ACTIVE, expiries)
end
if looked_at > 0 then
  redis.call('ZREMRANGEBYRANK', PENDING, 0, looked_at - 1)
  bulk('ZREM', DEADLINES, had_deadline)
end
if write_aside then
  write_aside()
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
end
return reply
