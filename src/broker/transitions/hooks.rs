use std::sync::LazyLock;
use std::time::Duration;

use super::super::reply::Parts;
use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};
use super::span::delay_ms;
use super::{Malformed, Record};
use crate::defaults;

static REGISTER: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "hooks_register",
        include_str!("../../../lua/hooks_register.lua"),
    )
});
static TAKE: LazyLock<Script> =
    LazyLock::new(|| Script::new("hooks_take", include_str!("../../../lua/hooks_take.lua")));
static DONE: LazyLock<Script> =
    LazyLock::new(|| Script::new("hooks_done", include_str!("../../../lua/hooks_done.lua")));

/// What a take call got.
#[derive(Debug)]
pub(crate) struct TakenHooks {
    /// Hooks that were tried for too long.
    pub(crate) dropped: usize,
    /// More are owed now.
    pub(crate) more: bool,
    pub(crate) hooks: Vec<TakenHook>,
}

/// An archived task whose hook this server holds.
#[derive(Debug)]
pub(crate) struct TakenHook {
    pub(crate) id: String,
    /// Names the hold.
    pub(crate) not_before: String,
    /// In ms since the epoch.
    pub(crate) died_at: u64,
    pub(crate) reason: String,
    pub(crate) error: String,
    pub(crate) record: Result<Record, Malformed>,
}

/// What became of a hook that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookEnd {
    Done,
    /// Not run to its end: owed at once.
    Back,
    /// Failed: to be tried again after this long.
    Again(Duration),
}

/// Notes the kinds that have a hook.
pub(crate) async fn register_hooks(
    redis: &impl Query,
    queue: &Queue,
    kinds: impl Iterator<Item = &str>,
) -> Result<(), BrokerError> {
    let mut call = REGISTER.on(&queue.base);
    for kind in kinds {
        call.arg(kind);
    }
    call.run(redis).await.map(drop)
}

/// Takes owed hooks of these kinds for `hold`.
pub(crate) async fn take_hooks(
    redis: &impl Query,
    queue: &Queue,
    room: usize,
    hold: Duration,
    kinds: impl Iterator<Item = &str>,
) -> Result<TakenHooks, BrokerError> {
    let mut call = TAKE.on(&queue.base);
    call.arg(room)
        .arg(hold.as_millis() as u64)
        .arg(defaults::HOOK_TRIES.as_millis() as u64)
        .arg(defaults::SCRIPT_BYTES);
    for kind in kinds {
        call.arg(kind);
    }
    let reply = Parts::of(call.run(redis).await?);
    reply.and_then(parse).ok_or_else(|| TAKE.unexpected())
}

fn parse(mut parts: Parts) -> Option<TakenHooks> {
    let dropped = usize::try_from(parts.integer()?).ok()?;
    let more = parts.integer()? == 1;
    let mut list = parts.parts()?;
    let mut hooks = Vec::with_capacity(list.len() / 4);
    while list.len() > 0 {
        let id = list.text()?;
        let not_before = list.text()?;
        let died_at = list.number()??;
        let mut fields = list.parts()?;
        let (mut reason, mut error) = (String::new(), String::new());
        let pairs = std::iter::from_fn(|| {
            let (field, value) = (fields.bytes()?, fields.bytes()?);
            match field.as_slice() {
                b"reason" => reason = String::from_utf8_lossy(&value).into_owned(),
                b"last_error" => error = String::from_utf8_lossy(&value).into_owned(),
                _ => {}
            }
            Some((field, value))
        });
        let record = Record::parse(pairs);
        hooks.push(TakenHook {
            id,
            not_before,
            died_at,
            reason,
            error,
            record,
        });
    }
    Some(TakenHooks {
        dropped,
        more,
        hooks,
    })
}

/// Ends this server's hold on hooks: (id, not before, what became of it).
pub(crate) async fn end_hooks(
    redis: &impl Query,
    queue: &Queue,
    ends: impl Iterator<Item = (&str, &str, HookEnd)>,
) -> Result<(), BrokerError> {
    let mut call = DONE.on(&queue.base);
    for (id, not_before, end) in ends {
        call.arg(id).arg(not_before).arg(match end {
            HookEnd::Done => "done".to_owned(),
            HookEnd::Back => "back".to_owned(),
            HookEnd::Again(delay) => delay_ms(delay).to_string(),
        });
    }
    call.run(redis).await.map(drop)
}
