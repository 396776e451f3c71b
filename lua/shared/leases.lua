-- Who holds a lease, and what a call on it returns.

local DONE = 1
-- There is no such lease.
local GONE = 0
-- Another lease lives.
local STALE = -1

-- Whether a lease, as it is in `leases`, is this holder's (`number@server`).
local function is_held_by(lease, holder)
  return string.sub(lease, 1, #holder + 1) == holder .. ' '
end

-- Who holds a lease; empty where there is none, or where somebody wrote something else by hand.
local function holder_in(lease)
  return lease and string.match(lease, '^(%d+@%S+) ') or ''
end
