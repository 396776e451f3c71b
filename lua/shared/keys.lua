-- The queue's keys. KEYS[1] is its base key, such as `windlass:{default}`; the hash tag keeps all its
-- keys in one slot of a cluster.

local base = KEYS[1]

local function key(name)
  return base .. ':' .. name
end

local function record_key(id)
  return base .. ':t:' .. id
end
