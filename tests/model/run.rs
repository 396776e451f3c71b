//! Runs, and what is told of one that fails.

use std::cell::RefCell;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine;
use tokio::runtime;

use crate::answer::Answer;
use crate::difference::difference;
use crate::generate::Machine;
use crate::invariants;
use crate::keys;
use crate::model::Model;
use crate::op::Op;
use crate::shrink::shortest;
use crate::support::RedisServer;
use crate::system::System;
use crate::tally::Tally;

const SEED: u64 = 8;
const RUNS: u32 = 200;
/// Operations in a run.
const STEPS: std::ops::RangeInclusive<usize> = 40..=80;
/// How long proptest may look for a shorter run that fails, in ms.
const SHRINK_MS: u32 = 10_000;

#[test]
fn scripts_do_what_the_model_does() {
    let seed = setting("MODEL_SEED").unwrap_or(SEED);
    let runs = setting("MODEL_CASES").map_or(RUNS, |n| n as u32);
    let started = Instant::now();
    let bench = RefCell::new(Bench::new());
    let machine = Machine::sequential_strategy(STEPS);
    let outcome = runner(seed, runs).run(&machine, |(_, ops, seen)| {
        let problems = bench.borrow_mut().run(&ops, seen.as_deref());
        problems.map_err(TestCaseError::fail)
    });
    let mut bench = bench.into_inner();
    println!(
        "seed {seed}: {} runs, {} operations, {:.1} s",
        bench.tally.runs,
        bench.tally.steps,
        started.elapsed().as_secs_f64()
    );
    match outcome {
        Ok(()) => {}
        Err(TestError::Abort(reason)) => panic!("no runs could be made: {reason}"),
        Err(TestError::Fail(reason, (_, ops, _))) => {
            let ops = shortest(ops, |ops| bench.run(ops, None).is_err());
            let problems = bench.run(&ops, None).err();
            let problems = problems.unwrap_or_else(|| format!("it fails at times:\n{reason}"));
            panic!(
                "the shortest failing run (seed {seed}):\n{}{problems}",
                listed(&ops)
            );
        }
    }
    println!("met least often: {:?}", bench.tally.rarest(10));
    if seed == SEED && runs >= RUNS {
        let steps = bench.tally.steps;
        assert!(steps >= 10_000, "{steps} operations are too few");
        assert_eq!(bench.tally.never_met(), [""; 0], "what no run has met");
    }
}

pub fn runner(seed: u64, runs: u32) -> TestRunner {
    let config = Config {
        cases: runs,
        failure_persistence: None,
        max_shrink_iters: u32::MAX - 1,
        max_shrink_time: SHRINK_MS,
        ..Config::default()
    };
    // Quick in a debug build, unlike ChaCha; it needs a seed that is not all zero.
    let mut bytes = [1; 16];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::XorShift, &bytes);
    TestRunner::new_with_rng(config, rng)
}

fn listed(ops: &[Op]) -> String {
    let lines = ops.iter().zip(1..);
    lines.map(|(op, i)| format!("{i:3}. {op}\n")).collect()
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number")),
    )
}

/// What all runs share.
struct Bench {
    runtime: runtime::Runtime,
    _redis: RedisServer,
    system: System,
    tally: Tally,
}

impl Bench {
    fn new() -> Self {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be built");
        let redis = RedisServer::start(&[]);
        let system = runtime.block_on(System::new(&redis));
        Self {
            runtime,
            _redis: redis,
            system,
            tally: Tally::default(),
        }
    }

    fn run(&mut self, ops: &[Op], seen: Option<&AtomicUsize>) -> Result<(), String> {
        let Self {
            runtime,
            system,
            tally,
            ..
        } = self;
        runtime.block_on(run(system, tally, ops, seen))
    }
}

async fn run(
    system: &mut System,
    tally: &mut Tally,
    ops: &[Op],
    seen: Option<&AtomicUsize>,
) -> Result<(), String> {
    system.reset().await;
    let mut model = Model::new();
    tally.runs += 1;
    let mut invariants = invariants::Seen::default();
    for (i, op) in ops.iter().enumerate() {
        // Tells the shrinking which operations were not reached.
        if let Some(seen) = seen {
            seen.fetch_add(1, Ordering::SeqCst);
        }
        if !Machine::preconditions(&model, op) {
            return Ok(());
        }
        let before = model.clone();
        model = Machine::apply(model, op);
        tally.note(op, &before, &model);
        let problems = step(system, &model, op, &mut invariants).await;
        if !problems.is_empty() {
            return Err(format!("after operation {}:\n{problems}", i + 1));
        }
    }
    Ok(())
}

/// Does one operation on Redis that the model has done; answers what is wrong, one line each.
async fn step(system: &mut System, model: &Model, op: &Op, seen: &mut invariants::Seen) -> String {
    let mut problems = String::new();
    let mut tell = |what: std::fmt::Arguments<'_>| {
        writeln!(problems, "  {what}").expect("memory is enough");
    };
    match system.done(op, model).await {
        Ok(answer) if answer == model.answer => {}
        Ok(answer) => tell(format_args!(
            "answer: expected {}, got {}",
            brief(&model.answer),
            brief(&answer)
        )),
        Err(error) => tell(format_args!("the script failed: {error:?}")),
    }
    let (found, age) = system.look().await;
    let mut published = model.published.clone();
    published.sort();
    let heard = system.heard();
    if heard != published {
        tell(format_args!(
            "messages: expected {published:?}, heard {heard:?}"
        ));
    }
    if let Op::Spoil(id, _) = op {
        seen.spoilt.insert((*id).to_owned());
    }
    for broken in invariants::broken(&found, seen) {
        tell(format_args!("{broken}"));
    }
    problems + &difference(&keys::expected(model), &found, age)
}

/// An answer without the bytes of large payloads.
fn brief(answer: &Answer) -> String {
    let mut text = format!("{answer:?}");
    let x = format!("{}, ", b'x');
    while let Some(at) = text.find(&x.repeat(20)) {
        let end = text[at..]
            .find(|c: char| !x.contains(c))
            .map_or(text.len(), |n| at + n);
        text.replace_range(at..end, "…");
    }
    text
}
