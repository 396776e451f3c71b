-- Numbers as text, and more arguments than one command takes.

-- A whole number as Redis stores and returns it: Lua itself writes large ones as 1.7e+15. Scores need
-- no `int`, because Redis reads them as numbers.
local function int(n)
  return string.format('%.0f', n)
end

-- A field of a record as a number, or nil where it is none. NaN and infinities are none: what is
-- computed from them would be refused by Redis in the middle of the writes.
local function finite(text)
  local n = tonumber(text or nil)
  return n and n - n == 0 and n or nil
end

-- A command on any number of arguments. `unpack` takes only so many at once; 1,000 is even, so pairs
-- stay whole.
local function bulk(command, target, args)
  for first = 1, #args, 1000 do
    redis.call(command, target, unpack(args, first, math.min(first + 999, #args)))
  end
end
