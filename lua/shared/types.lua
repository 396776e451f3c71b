-- Keys of another type than they should be.

-- Fails where one of these keys is of another type: a script asks so, before its first write, about what
-- it is going to write and has not read.
local function check_types(...)
  for _, name in ipairs({ ... }) do
    redis.call(name == 'leases' and 'HLEN' or 'ZCARD', key(name))
  end
end
