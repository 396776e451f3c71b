//! Each operation beside a key of another type: it does its work, or it fails and has written nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use proptest::test_runner::TestCaseError;
use proptest_state_machine::ReferenceStateMachine;
use tokio::runtime;

use crate::difference::difference;
use crate::generate::Machine;
use crate::keys::{self, Keys, Value};
use crate::model::Model;
use crate::op::Op;
use crate::run::runner;
use crate::support::{RedisServer, STATES};
use crate::system::{BASE, System};

const SEED: u64 = 7;
const RUNS: u32 = 40;
const STEPS: std::ops::RangeInclusive<usize> = 40..=60;
/// How many keys are tried beside each operation: one after the other, each with one type after the other.
const AT_ONCE: usize = 2;

/// A queue's keys and their types. Its counters are not among them: they only count.
const KEYS: [(&str, &str); 12] = [
    ("pending", "zset"),
    ("active", "zset"),
    ("scheduled", "zset"),
    ("retry", "zset"),
    ("archived", "zset"),
    ("completed", "zset"),
    ("deadlines", "zset"),
    ("hooks", "zset"),
    ("waiters", "zset"),
    ("leases", "hash"),
    ("meta", "hash"),
    ("wake", "list"),
];
/// How a key becomes one of a type.
const TYPES: [(&str, [&str; 4]); 5] = [
    ("string", ["SET", "key", "x", ""]),
    ("list", ["RPUSH", "key", "x", ""]),
    ("set", ["SADD", "key", "x", ""]),
    ("hash", ["HSET", "key", "x", "1"]),
    ("zset", ["ZADD", "key", "1", "x"]),
];

#[test]
fn beside_a_key_of_another_type_nothing_is_written_or_no_task_is_lost() {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    let redis = RedisServer::start(&[]);
    let bench = RefCell::new(Bench {
        system: runtime.block_on(System::new(&redis)),
        trials: BTreeMap::new(),
        problems: BTreeMap::new(),
    });
    let machine = Machine::sequential_strategy(STEPS);
    let outcome = runner(SEED, RUNS).run(&machine, |(_, ops, _)| {
        runtime.block_on(bench.borrow_mut().run(&ops));
        Ok::<_, TestCaseError>(())
    });
    assert!(outcome.is_ok(), "no runs could be made: {outcome:?}");
    let Bench {
        trials, problems, ..
    } = bench.into_inner();
    println!("{} trials", trials.values().sum::<usize>());
    for (op, trials) in &trials {
        assert!(*trials >= 2 * KEYS.len(), "{op} was hardly tried: {trials}");
    }
    let problems: Vec<_> = problems.into_values().collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

struct Bench {
    system: System,
    /// How often each operation was tried.
    trials: BTreeMap<String, usize>,
    /// The first problem of each operation with each key.
    problems: BTreeMap<(String, &'static str), String>,
}

impl Bench {
    async fn run(&mut self, ops: &[Op]) {
        self.system.reset().await;
        let mut model = Model::new();
        for op in ops {
            if !Machine::preconditions(&model, op) {
                return;
            }
            let after = Machine::apply(model.clone(), op);
            if let Some(name) = name(op) {
                for _ in 0..AT_ONCE {
                    self.try_beside_a_wrong_type(&name, op, &after).await;
                }
            }
            model = after;
            let done = self.system.done(op, &model).await;
            done.unwrap_or_else(|error| panic!("{op}: {error:?}"));
        }
    }

    async fn try_beside_a_wrong_type(&mut self, name: &str, op: &Op, after: &Model) {
        let trial = self.trials.entry(name.to_owned()).or_default();
        let (key, right) = KEYS[*trial % KEYS.len()];
        let mut types = TYPES.iter().filter(|(wrong, _)| *wrong != right);
        let (wrong, make) = types.nth(*trial / KEYS.len() % 4).expect("there are four");
        *trial += 1;
        let system = &mut self.system;
        system.spoil_key(key, make).await;
        let (before, _) = system.look().await;
        let done = system.done(op, after).await;
        let (found, age) = system.look().await;
        let problem = match done {
            Ok(_) => lost(&before, &found, &keys::expected(after)),
            Err(_) => difference(&without_counters(before), &without_counters(found), age),
        };
        system.unspoil().await;
        if !problem.is_empty() {
            let place = (name.to_owned(), key);
            let outcome = done.map_or("failed", |_| "worked");
            self.problems.entry(place).or_insert_with(|| {
                format!("{op}\n  beside the {wrong} {key} {outcome}:\n{problem}")
            });
        }
    }
}

/// What a script does, in a word. `None`: it is no script.
fn name(op: &Op) -> Option<String> {
    let text = op.to_string();
    match op {
        Op::Pause | Op::Resume | Op::TakeToken | Op::Clock(_) | Op::Spoil(..) => None,
        Op::Claim { .. } => Some("claim".to_owned()),
        Op::Publish(_) | Op::Retire(_) | Op::RegisterOldHook(_) => None,
        _ => text.split([' ', ',']).next().map(str::to_owned),
    }
}

fn without_counters(mut keys: Keys) -> Keys {
    let stats = format!("{BASE}:stats");
    keys.retain(|name, _| !name.starts_with(&stats));
    keys
}

/// The tasks that have a record and are in no state any more, and those whose record should still be there.
fn lost(before: &Keys, found: &Keys, expected: &Keys) -> String {
    let listed = listed(found);
    let was_listed = self::listed(before);
    let records = format!("{BASE}:t:");
    let ids = found.keys().filter_map(|name| name.strip_prefix(&records));
    let is_lost = |id: &&str| was_listed.contains(*id) && !listed.contains(*id);
    let unlisted = ids
        .filter(is_lost)
        .map(|id| format!("  {id} is in no state\n"));
    let gone = before.keys().filter(|name| name.starts_with(&records));
    let gone = gone.filter(|name| expected.contains_key(*name) && !found.contains_key(*name));
    unlisted
        .chain(gone.map(|name| format!("  {name} is gone\n")))
        .collect()
}

/// The ids that are in a state.
fn listed(keys: &Keys) -> BTreeSet<&str> {
    let sets = STATES
        .iter()
        .filter_map(|state| keys.get(&format!("{BASE}:{state}")));
    let ids = sets.flat_map(|set| match &set.value {
        Value::Sorted(members) => members.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    });
    ids.collect()
}
