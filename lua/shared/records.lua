-- Tasks' records, and the state sets that their ids are in.

-- The fields that decide where a task goes. Not the payload, which may be large.
local DECIDING = {
  'kind', 'retried', 'max_retry', 'priority', 'started_at', 'lost', 'deadline', 'start_before', 'retention',
  'unique', 'lock_time', 'superseded', 'cancel', 'undecodable', 'last_error',
}

-- Reads these fields of a record, or the deciding ones: returns them by name, or nil and 'missing' or
-- 'malformed'. Only a read that succeeded and found nothing means missing; an error that is not about
-- the record aborts.
local function read_record(id, fields)
  fields = fields or DECIDING
  local values = redis.pcall('HMGET', record_key(id), unpack(fields))
  if values.err then
    if string.find(values.err, '^WRONGTYPE') then
      return nil, 'malformed'
    end
    error({ err = values.err })
  end
  local record = {}
  for i, field in ipairs(fields) do
    record[field] = values[i] or nil
  end
  if record.kind then
    return record
  end
  return nil, redis.call('EXISTS', record_key(id)) == 0 and 'missing' or 'malformed'
end

-- The state that an id's set stands for, as in `key('pending')`, or nil; and its score.
local function locate(id)
  for _, set in ipairs({ 'pending', 'active', 'scheduled', 'retry', 'archived', 'completed' }) do
    local score = redis.call('ZSCORE', key(set), id)
    if score then
      return set, tonumber(score)
    end
  end
end
