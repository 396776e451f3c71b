//! New tasks, with few options or many.

use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;

use crate::model::{Lock, Model};
use crate::op::*;
use crate::shapes::{IDS, KINDS, LARGE, LOCK_KEYS, PAYLOADS};

pub fn new() -> impl Strategy<Value = New> {
    let payload = select(&PAYLOADS[..]);
    let what = (select(&IDS[..]), any::<bool>(), select(&KINDS[..]), payload);
    let when = (due(), weighted(0.2, from_now()), weighted(0.15, from_now()));
    let how = (
        prop_oneof![4 => Just(0), 1 => 1..10u8],
        weighted(0.2, 0..3u32),
        weighted(0.1, select(vec![0, 60_000])),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
    );
    let after = (
        weighted(0.4, select(vec![1_000, 60_000, 3_600_000])),
        weighted(0.5, unique()),
    );
    (what, when, how, after).prop_map(|(what, when, how, after)| New {
        id: what.0,
        own_id: what.1,
        kind: what.2,
        payload: what.3,
        due: when.0,
        deadline: when.1,
        start_before: when.2,
        priority: how.0,
        max_retry: how.1,
        timeout: how.2,
        policy: how.3,
        header: how.4,
        retention: after.0.unwrap_or(0),
        unique: after.1,
    })
}

/// A task that would replace one that is there, or be a duplicate of it for its kind.
pub fn replacing(model: &Model) -> Option<impl Strategy<Value = New> + use<>> {
    let free = IDS.iter().filter(|id| !model.tasks.contains_key(*id));
    let free: Vec<_> = free.copied().collect();
    let target = |(name, lock): (&String, &Lock)| {
        let key = |key: &&&str| name.ends_with(&format!("{{{key}}}"));
        let key = *LOCK_KEYS.iter().find(key)?;
        let holder = model.tasks.get(lock.id)?;
        let target = Just((holder.kind, key, name.starts_with('{')));
        // What runs is superseded, which has more to it than what waits.
        let weight = if holder.is_active() { 5 } else { 1 };
        (lock.mode == Mode::Replace).then_some((weight, target))
    };
    let targets: Vec<_> = model.locks.iter().filter_map(target).collect();
    if free.is_empty() || targets.is_empty() {
        return None;
    }
    let new = (
        new(),
        select(free),
        Union::new_weighted(targets),
        any::<bool>(),
        unique(),
    );
    let new = new.prop_map(
        |(new, id, (kind, key, across_kinds), of_any_kind, unique)| New {
            id,
            kind: if of_any_kind { new.kind } else { kind },
            unique: Some(Unique {
                mode: Mode::Replace,
                key: Some(key),
                across_kinds,
                ..unique
            }),
            ..new
        },
    );
    Some(new)
}

/// Two of them do not fit into one claim.
pub fn large() -> impl Strategy<Value = New> {
    new().prop_map(|new| New {
        payload: LARGE,
        due: Due::Now,
        deadline: None,
        start_before: None,
        // The SHA-1 of so much is slow in a debug build.
        unique: new.unique.filter(|unique| unique.key.is_some()),
        ..new
    })
}

fn due() -> impl Strategy<Value = Due> {
    prop_oneof![
        4 => Just(Due::Now),
        2 => super::span().prop_map(Due::After),
        1 => from_now().prop_map(Due::At),
    ]
}

fn from_now() -> impl Strategy<Value = FromNow> {
    select(vec![1, 1_000, 30_000, 600_000, 0, -1_000])
}

fn unique() -> impl Strategy<Value = Unique> {
    let mode = prop_oneof![
        2 => Just(Mode::Done),
        2 => Just(Mode::Started),
        1 => Just(Mode::Time),
        3 => Just(Mode::Replace),
    ];
    let key = prop_oneof![3 => select(&LOCK_KEYS[..]).prop_map(Some), 1 => Just(None)];
    let key = (key, prop::bool::weighted(0.3));
    // Long enough not to end by Redis' own clock before the test looks.
    let lasts = select(vec![600_000, 7_200_000]);
    let wait = weighted(0.5, select(vec![1_000, 60_000]));
    (mode, key, weighted(0.3, lasts.clone()), lasts, wait).prop_map(
        |(mode, key, at_most, time, wait)| Unique {
            mode,
            key: key.0,
            across_kinds: key.1 && key.0.is_some(),
            lasts: match mode {
                Mode::Time => Some(time),
                _ => at_most,
            },
            max_wait: wait,
        },
    )
}
