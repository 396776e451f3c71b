//! What must be true of a queue whenever no script runs.

use std::collections::{BTreeMap, BTreeSet};

use super::{STATES, Stage};

/// Looks at a whole queue at one moment, so that it is also exact while servers work. Returns the
/// ids in each state, those with a record, with a lease, with a hook, with a deadline, those that
/// wait and have a deadline by their record, and the locks with their holders.
const LOOK: &str = r#"#!lua flags=no-writes
local base = ARGV[1]
local function set(name) return redis.call('ZRANGE', base .. name, 0, -1) end
local function named(start)
  local pattern = string.gsub(base .. start, '[{}]', '[%0]') .. '*'
  local names = redis.call('KEYS', pattern)
  for i, key in ipairs(names) do names[i] = string.sub(key, #base + #start + 1) end
  return names
end

local states, expected = {}, {}
for i = 2, #ARGV do
  local state = ARGV[i]
  local ids = set(state)
  states[i - 1] = ids
  if state == 'pending' or state == 'scheduled' or state == 'retry' then
    for _, id in ipairs(ids) do
      local fields = { 'deadline', 'start_before', 'started_at' }
      local t = redis.call('HMGET', base .. 't:' .. id, unpack(fields))
      if t[1] or (t[2] and not t[3]) then expected[#expected + 1] = id end
    end
  end
end
local locks = named('unique:')
for i, key in ipairs(locks) do locks[i] = { key, redis.call('GET', base .. 'unique:' .. key) } end
return { states, named('t:'), redis.call('HKEYS', base .. 'leases'), set('hooks'), set('deadlines'), expected, locks }
"#;

type Ids = BTreeSet<String>;
type Found = (
    Vec<Vec<String>>,
    Ids,
    Ids,
    Ids,
    Ids,
    Ids,
    Vec<(String, String)>,
);

impl Stage {
    /// Checks for the queue `default`, at one moment, what must be true whenever no script runs.
    pub async fn audit(&self) {
        let mut look = redis::cmd("EVAL");
        look.arg(LOOK).arg(0).arg(self.key("")).arg(&STATES);
        let found: Found = look.query_async(&mut self.redis()).await.unwrap();
        let (states, records, leased, hooks, deadlines, expected, locks) = found;

        let mut state_of = BTreeMap::new();
        for (state, ids) in STATES.into_iter().zip(&states) {
            for id in ids {
                let before = state_of.insert(id.as_str(), state);
                assert_eq!(before, None, "{id} is in {state}, too");
            }
        }
        let listed: Ids = states.concat().into_iter().collect();
        assert_eq!(records, listed, "records and what is in a state");
        let active: Ids = states[1].iter().cloned().collect();
        assert_eq!(leased, active, "leases and active tasks");
        for id in &hooks {
            assert_eq!(
                state_of.get(id.as_str()),
                Some(&"archived"),
                "owes a hook: {id}"
            );
        }
        assert_eq!(deadlines, expected, "deadlines and waiting tasks with one");
        for (lock, holder) in locks {
            let (mode, id) = holder.split_once(' ').expect("mode and id");
            if mode != "time" {
                let state = state_of.get(id).copied().unwrap_or("gone");
                let ended = ["archived", "completed", "gone"].contains(&state);
                assert!(!ended, "{id} is {state} and holds {lock}");
            }
        }
    }
}
