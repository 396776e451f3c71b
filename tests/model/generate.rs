//! Which operations come, given how the queue stands: mostly such as mean something there.

mod tasks;

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::{BoxedStrategy, Union};
use proptest_state_machine::ReferenceStateMachine;

use crate::broker::operator::EndWish;
use crate::broker::{ArchiveReason, HookEnd};
use crate::model::{Health, Model, Stands, Task};
use crate::op::*;
use crate::shapes::{IDS, KINDS, PAYLOADS, SERVERS, SKEW, SPANS};

/// The machine whose states are models.
pub struct Machine;

impl ReferenceStateMachine for Machine {
    type State = Model;
    type Transition = Op;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::new()).boxed()
    }

    fn transitions(model: &Model) -> BoxedStrategy<Op> {
        let groups = [enqueue(model), leases(model), servers(model), people(model)];
        Union::new_weighted(groups.into_iter().flatten().collect()).boxed()
    }

    fn apply(mut model: Model, op: &Op) -> Model {
        model.step(op);
        model
    }

    fn preconditions(model: &Model, op: &Op) -> bool {
        match op {
            // A queue knows a task by its record. One whose record was taken away can be enqueued
            // once more while its id still stands in a state.
            Op::Enqueue(tasks) => tasks.iter().all(|new| {
                let task = model.tasks.get(new.id);
                task.is_none_or(|task| task.health != Health::Missing)
            }),
            _ => true,
        }
    }
}

type Weighted = Vec<(u32, BoxedStrategy<Op>)>;

fn span() -> impl Strategy<Value = u64> + Clone {
    select(&SPANS[..])
}

fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 2 => span()]
}

fn any_id() -> impl Strategy<Value = Id> {
    select(&IDS[..])
}

/// One of these ids mostly, else any.
fn id_of(ids: Vec<Id>) -> BoxedStrategy<Id> {
    if ids.is_empty() {
        any_id().boxed()
    } else {
        prop_oneof![6 => select(ids), 1 => any_id()].boxed()
    }
}

/// One of these ids in half of all cases, if there are any.
fn often_of(ids: Vec<Id>, other: BoxedStrategy<Id>) -> BoxedStrategy<Id> {
    match ids.is_empty() {
        true => other,
        false => prop_oneof![select(ids), other].boxed(),
    }
}

fn ids_where(model: &Model, is_wanted: impl Fn(&Task) -> bool) -> Vec<Id> {
    let tasks = model.tasks.iter().filter(|(_, task)| is_wanted(task));
    tasks.map(|(&id, _)| id).collect()
}

fn enqueue(model: &Model) -> Weighted {
    let one = match tasks::replacing(model) {
        Some(replacing) => prop_oneof![1 => tasks::new(), 3 => replacing].boxed(),
        None => tasks::new().boxed(),
    };
    let batch = prop_oneof![
        4 => vec(one, 1..=1),
        3 => vec(tasks::new(), 2..=5),
        1 => vec(tasks::large(), 2..=3),
    ];
    vec![(16, batch.prop_map(Op::Enqueue).boxed())]
}

/// A task with a lease mostly, as its holder knows it mostly.
fn held(model: &Model) -> BoxedStrategy<Held> {
    let lease = prop_oneof![
        14 => Just(Which::Current),
        2 => (1..3usize).prop_map(Which::Former),
        1 => Just(Which::OtherServer),
        1 => Just(Which::OtherNumber),
    ];
    let id = id_of(ids_where(model, |task| task.lease().is_some()));
    let id = often_of(ids_where(model, Task::is_fated), id);
    (id, lease)
        .prop_map(|(id, lease)| Held { id, lease })
        .boxed()
}

/// What the last tick found mostly.
fn found(model: &Model) -> BoxedStrategy<Held> {
    let ids: Vec<_> = model.found.iter().map(|(id, _)| *id).collect();
    let lease = prop_oneof![6 => Just(Which::Found), 1 => Just(Which::Current)];
    (id_of(ids), lease)
        .prop_map(|(id, lease)| Held { id, lease })
        .boxed()
}

/// How often in a row.
fn row() -> impl Strategy<Value = Option<u32>> {
    option::of(1..4u32)
}

fn retries(held: BoxedStrategy<Held>) -> impl Strategy<Value = Vec<Retry>> {
    let retry = (held, delay(), any::<bool>(), row(), row());
    let retry = retry.prop_map(|(task, delay, spends, lost, undecodable)| Retry {
        task,
        delay,
        spends,
        lost,
        undecodable,
    });
    vec(retry, 1..4)
}

fn archives(held: BoxedStrategy<Held>) -> impl Strategy<Value = Vec<Archive>> {
    let reason = select(vec![
        ArchiveReason::RetriesExhausted,
        ArchiveReason::LeaseExpired,
        ArchiveReason::Skipped,
    ]);
    let archive =
        (held, reason, row()).prop_map(|(task, reason, lost)| Archive { task, reason, lost });
    vec(archive, 1..4)
}

/// What workers do with leases.
fn leases(model: &Model) -> Weighted {
    let are_some = model.tasks.values().any(|task| task.lease().is_some());
    let often = |weight| if are_some { weight } else { 1 };
    let is_cancelled = model.tasks.values().any(|task| task.cancel.is_some());
    let settled = |weight| {
        if model.tasks.values().any(Task::is_fated) {
            2 * weight
        } else {
            often(weight)
        }
    };
    let held = held(model);
    let room = prop_oneof![1 => Just(0), 6 => 1..6usize];
    let claim = (select(&SERVERS[..]), room, span());
    let result = option::of(Just("result"));
    let defer = (held.clone(), delay(), any::<bool>());
    let release = (held.clone(), any::<bool>());
    vec![
        (
            16,
            claim
                .prop_map(|(server, room, lease)| Op::Claim {
                    server,
                    room,
                    lease,
                })
                .boxed(),
        ),
        (
            if is_cancelled { 12 } else { often(4) },
            (span(), vec(held.clone(), 1..4))
                .prop_map(|(lease, tasks)| Op::Extend { lease, tasks })
                .boxed(),
        ),
        (
            often(2),
            (held.clone(), select(&["half", "most"][..]))
                .prop_map(|(task, note)| Op::Progress { task, note })
                .boxed(),
        ),
        (
            often(8),
            vec((held.clone(), result), 1..4)
                .prop_map(Op::Complete)
                .boxed(),
        ),
        (
            often(2),
            vec(held.clone(), 1..4).prop_map(Op::Revoke).boxed(),
        ),
        (
            settled(8),
            retries(held.clone())
                .prop_map(|tasks| Op::Retry {
                    by: Settler::Holder,
                    tasks,
                })
                .boxed(),
        ),
        (
            settled(5),
            archives(held)
                .prop_map(|tasks| Op::Archive {
                    by: Settler::Holder,
                    tasks,
                })
                .boxed(),
        ),
        (
            settled(4),
            vec(
                defer.prop_map(|(task, delay, started)| Defer {
                    task,
                    delay,
                    started,
                }),
                1..4,
            )
            .prop_map(Op::Defer)
            .boxed(),
        ),
        (
            settled(4),
            vec(
                release.prop_map(|(task, started)| Release { task, started }),
                1..4,
            )
            .prop_map(Op::Release)
            .boxed(),
        ),
    ]
}

/// What servers do beside running tasks.
fn servers(model: &Model) -> Weighted {
    let has_found = !model.found.is_empty();
    let often = |weight| if has_found { weight } else { 1 };
    let found = found(model);
    let skew = prop_oneof![6 => Just(SKEW), 1 => Just(0)];
    let by = skew.clone().prop_map(|skew| Settler::Recoverer { skew });
    let grace = prop_oneof![2 => Just(0), 1 => span()];
    let vouched = prop_oneof![2 => Just(0), 1 => span()];
    let tick = (span(), vouched, grace, skew).prop_map(|(harmless, vouched, grace, skew)| Tick {
        harmless,
        vouched,
        grace,
        skew,
    });
    let strays = ids_where(model, |task| task.set().is_none());
    let are_strays = !strays.is_empty();
    let strays = id_of(strays);
    let are_completed = ids_where(model, |task| matches!(task.stands, Stands::Completed(_)));
    let age = select(vec![0, 60_000, 7_200_000]);
    let keep = select(vec![60_000, 3_600_000]);
    let sweep = (0..4usize, age, keep, 0..2usize, prop::bool::weighted(0.1));
    let owed = ids_where(model, |task| task.hook.is_some());
    let is_held = owed.iter().any(|id| model.holds.contains_key(id));
    let owed = id_of(owed);
    let end = prop_oneof![
        4 => Just(HookEnd::Done),
        1 => Just(HookEnd::Back),
        1 => Just(HookEnd::Dropped),
        1 => span().prop_map(|ms| HookEnd::Again(Duration::from_millis(ms))),
    ];
    let hook_done = (owed, prop::bool::weighted(0.2), end);
    let kinds = prop::sample::subsequence(&KINDS[..], 1..=KINDS.len());
    let take = (1..4usize, span(), kinds.clone());
    vec![
        (5, Just(Op::Promote).boxed()),
        (3, Just(Op::Expire).boxed()),
        (6, tick.prop_map(Op::Tick).boxed()),
        (
            often(4),
            (by.clone(), retries(found.clone()))
                .prop_map(|(by, tasks)| Op::Retry { by, tasks })
                .boxed(),
        ),
        (
            often(3),
            (by, archives(found))
                .prop_map(|(by, tasks)| Op::Archive { by, tasks })
                .boxed(),
        ),
        (
            if are_strays { 6 } else { 1 },
            vec(strays, 1..4).prop_map(Op::Adopt).boxed(),
        ),
        (
            if are_completed.is_empty() { 2 } else { 4 },
            sweep
                .prop_map(|(cap, age, keep_for_hooks, pass_over, sheds)| {
                    Op::Sweep(Sweep {
                        cap,
                        age,
                        keep_for_hooks,
                        pass_over,
                        sheds,
                    })
                })
                .boxed(),
        ),
        (
            if model.meta.hooked.is_empty() { 6 } else { 1 },
            (kinds, span())
                .prop_map(|(kinds, lasts)| Op::RegisterHooks { kinds, lasts })
                .boxed(),
        ),
        (
            if model.meta.hooked.is_empty() { 1 } else { 2 },
            span().prop_map(Op::LapseHooks).boxed(),
        ),
        (1, select(&KINDS[..]).prop_map(Op::RegisterOldHook).boxed()),
        (
            4,
            take.prop_map(|(room, hold, kinds)| Op::TakeHooks(TakeHooks { room, hold, kinds }))
                .boxed(),
        ),
        (
            if is_held { 10 } else { 2 },
            vec(
                hook_done.prop_map(|(id, late, end)| HookDone { id, late, end }),
                1..3,
            )
            .prop_map(Op::EndHooks)
            .boxed(),
        ),
        (2, Just(Op::TakeToken).boxed()),
        (
            if model.alive.len() < 2 { 6 } else { 1 },
            select(&SERVERS[..]).prop_map(Op::Publish).boxed(),
        ),
        (
            // What becomes of such a task is another matter once its server is gone.
            if model.tasks.values().any(|task| task.superseded) {
                6
            } else {
                1
            },
            select(&SERVERS[..]).prop_map(Op::Retire).boxed(),
        ),
    ]
}

/// What people do, and what befalls them.
fn people(model: &Model) -> Weighted {
    let id = || id_of(model.tasks.keys().copied().collect());
    let ended = id_of(ids_where(model, |task| task.has_ended()));
    let active = id_of(ids_where(model, |task| task.is_active()));
    let wish = select(vec![EndWish::Decide, EndWish::Archive, EndWish::Delete]);
    let fated = ids_where(model, Task::is_fated);
    let are_fated = !fated.is_empty();
    let end = often_of(fated, prop_oneof![active, id()].boxed());
    let end = (end, wish, any::<bool>());
    let damage = select(vec![
        Damage::Unlisted,
        Damage::NoRecord,
        Damage::NoKind,
        Damage::NoHash,
    ]);
    vec![
        (
            3,
            (id(), span())
                .prop_map(|(id, patience)| Op::Wait { id, patience })
                .boxed(),
        ),
        (4, prop_oneof![ended, id()].prop_map(Op::Run).boxed()),
        (
            2,
            (id(), select(&PAYLOADS[..]))
                .prop_map(|(id, payload)| Op::Edit { id, payload })
                .boxed(),
        ),
        (
            if are_fated { 30 } else { 10 },
            end.prop_map(|(id, wish, is_cancel)| Op::End {
                id,
                wish,
                is_cancel,
            })
            .boxed(),
        ),
        (2, id().prop_map(Op::Look).boxed()),
        (1, Just(Op::Pause).boxed()),
        (
            if model.meta.paused { 6 } else { 1 },
            Just(Op::Resume).boxed(),
        ),
        (14, clock().prop_map(Op::Clock).boxed()),
        (
            2,
            (id(), damage)
                .prop_map(|(id, damage)| Op::Spoil(id, damage))
                .boxed(),
        ),
    ]
}

fn clock() -> impl Strategy<Value = Clock> {
    let event = select(vec![
        Event::Due,
        Event::Deadline,
        Event::Expiry,
        Event::Lost,
        Event::Lost,
        Event::GraceEnd,
        Event::RetentionEnd,
        Event::Hook,
        Event::Lapse,
        Event::LockEnd,
    ]);
    let forward = select(vec![1, 600, 1_000, 1_000_000, 30_000_000, 3_600_000_000]);
    prop_oneof![
        10 => (event, -1..=1i64).prop_map(|(event, ms)| Clock::To(event, ms)),
        8 => forward.prop_map(Clock::Forward),
        1 => select(vec![1, 3_000, 60_000]).prop_map(Clock::Back),
    ]
}
