//! What must be true of a queue whenever no script runs.

use std::collections::{BTreeMap, BTreeSet};

use super::{STATES, Stage};

/// Looks at a whole queue at one moment, so that it is also exact while servers work. Returns the
/// ids in each state; those with a record, a lease, a hook, a deadline; those that wait and have a
/// deadline by their record; the locks with their holders; and three counters.
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
      -- A record may be of another type: that is for the test to see.
      local t = redis.pcall('HMGET', base .. 't:' .. id, 'deadline', 'start_before', 'started_at')
      if t[1] or (t[2] and not t[3]) then expected[#expected + 1] = id end
    end
  end
end
local locks = named('unique:')
for i, key in ipairs(locks) do locks[i] = { key, redis.call('GET', base .. 'unique:' .. key) } end
return {
  states, named('t:'), redis.call('HKEYS', base .. 'leases'), set('hooks'), set('deadlines'),
  expected, locks, redis.call('HMGET', base .. 'stats', 'enqueued', 'processed', 'failed'),
}
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
    [Option<u64>; 3],
);

/// How many tasks a queue has in each state, and what its counters say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    pub pending: u64,
    pub active: u64,
    pub scheduled: u64,
    pub retry: u64,
    pub archived: u64,
    pub completed: u64,
    pub enqueued: u64,
    /// Tries that ended well.
    pub succeeded: u64,
}

impl Census {
    pub fn in_all_states(&self) -> u64 {
        let waiting = self.pending + self.scheduled + self.retry;
        waiting + self.active + self.archived + self.completed
    }
}

impl Stage {
    /// Checks for the queue `default`, at one moment, what must be true whenever no script runs.
    pub async fn audit(&self) -> Census {
        self.inspect().await.expect("a sound queue")
    }

    /// The census, or what does not fit together.
    pub async fn inspect(&self) -> Result<Census, Vec<String>> {
        let mut look = redis::cmd("EVAL");
        look.arg(LOOK).arg(0).arg(self.key("")).arg(&STATES);
        let found: Found = look.query_async(&mut self.redis()).await.unwrap();
        let (states, records, leased, hooks, deadlines, expected, locks, counters) = found;
        let mut problems = Vec::new();

        let mut state_of = BTreeMap::new();
        for (state, ids) in STATES.into_iter().zip(&states) {
            for id in ids {
                if let Some(other) = state_of.insert(id.as_str(), state) {
                    problems.push(format!("{id} is in {other} and in {state}"));
                }
            }
        }
        let listed = state_of.keys().map(|id| id.to_string()).collect();
        let active = states[1].iter().cloned().collect();
        for (what, one, other) in [
            ("a record or a state", &records, &listed),
            ("a lease or is active", &leased, &active),
            (
                "a deadline in its record or in `deadlines`",
                &expected,
                &deadlines,
            ),
        ] {
            let odd = one.symmetric_difference(other);
            problems.extend(odd.map(|id| format!("{id} has only one of {what}")));
        }
        for id in hooks {
            if state_of.get(id.as_str()) != Some(&"archived") {
                problems.push(format!("{id} owes a hook and is not archived"));
            }
        }
        for (lock, holder) in locks {
            let (mode, id) = holder.split_once(' ').expect("mode and id");
            let state = state_of.get(id).copied().unwrap_or("gone");
            if mode != "time" && ["archived", "completed", "gone"].contains(&state) {
                problems.push(format!("{id} is {state} and holds {lock}"));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }

        let [pending, active, scheduled, retry, archived, completed] =
            [0, 1, 2, 3, 4, 5].map(|state| states[state].len() as u64);
        let [enqueued, processed, failed] = counters.map(Option::unwrap_or_default);
        Ok(Census {
            pending,
            active,
            scheduled,
            retry,
            archived,
            completed,
            enqueued,
            succeeded: processed.saturating_sub(failed),
        })
    }
}
