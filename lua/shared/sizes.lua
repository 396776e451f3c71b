-- How many bytes of Redis' memory a record takes. Samples more fields than most records have.
local function size_of(id)
  return redis.call('MEMORY', 'USAGE', record_key(id), 'SAMPLES', 32) or 0
end
