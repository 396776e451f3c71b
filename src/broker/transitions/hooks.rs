use std::sync::LazyLock;
use std::time::Duration;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::Queue;
use crate::broker::reply::{Text, lossy, texts};
use crate::broker::script::Script;
use crate::broker::transitions::record::{Malformed, Record};
use crate::broker::transitions::span::delay_ms;
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

static LAPSE: LazyLock<Script> =
    LazyLock::new(|| Script::new("hooks_lapse", include_str!("../../../lua/hooks_lapse.lua")));

/// An owed hook that will not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DroppedHook {
    pub(crate) id: String,
    /// Empty where the task's record cannot be read.
    pub(crate) kind: String,
}

impl From<(Text, Text)> for DroppedHook {
    fn from((Text(id), Text(kind)): (Text, Text)) -> Self {
        Self { id, kind }
    }
}

/// What a take call got.
#[derive(Debug)]
pub(crate) struct TakenHooks {
    /// Hooks of tasks that cannot be read.
    pub(crate) dropped: Vec<DroppedHook>,
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
    /// When its last failed attempt ended, in ms since the epoch.
    pub(crate) last_failed_at: Option<u64>,
    pub(crate) reason: String,
    pub(crate) error: String,
    /// How often the hook has failed.
    pub(crate) failed: u32,
    pub(crate) record: Result<Record, Malformed>,
}

/// What became of a hook that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookEnd {
    Done,
    /// Cannot run, because its task cannot be read.
    Dropped,
    /// Not run to its end: owed at once.
    Back,
    /// Failed: to be tried again after this long.
    Again(Duration),
}

/// Notes the kinds that have a hook. It is known for so long, unless it is renewed.
pub(crate) async fn register_hooks(
    redis: &impl Query,
    queue: &Queue,
    lasts: Duration,
    kinds: impl Iterator<Item = &str>,
) -> Result<(), BrokerError> {
    let mut call = REGISTER.on(&queue.base);
    call.arg(lasts.as_millis() as u64);
    for kind in kinds {
        call.arg(kind);
    }
    call.run(redis).await.map(drop)
}

/// Forgets the kinds whose hooks are not renewed, and returns them. One that notes no time holds for `lasts`
/// from now on.
pub(crate) async fn lapse_hooks(
    redis: &impl Query,
    queue: &Queue,
    lasts: Duration,
) -> Result<Vec<String>, BrokerError> {
    let mut call = LAPSE.on(&queue.base);
    call.arg(lasts.as_millis() as u64);
    Ok(texts(call.read(redis).await?))
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
        .arg(defaults::SCRIPT_BYTES);
    for kind in kinds {
        call.arg(kind);
    }
    let reply: (Vec<(Text, Text)>, bool, Vec<Hook>) = call.read(redis).await?;
    let (dropped, more, hooks) = reply;
    Ok(TakenHooks {
        dropped: dropped.into_iter().map(DroppedHook::from).collect(),
        more,
        hooks: hooks.into_iter().map(TakenHook::from).collect(),
    })
}

/// As the script returns it: id, not before, when the task died, its record's fields and values.
type Hook = (Text, Text, u64, Vec<(Vec<u8>, Vec<u8>)>);

impl From<Hook> for TakenHook {
    fn from((Text(id), Text(not_before), died_at, fields): Hook) -> Self {
        let text_of = |name: &[u8]| {
            let found = fields.iter().find(|(field, _)| field == name);
            found.map_or(String::new(), |(_, value)| lossy(value))
        };
        Self {
            id,
            not_before,
            died_at,
            last_failed_at: text_of(b"last_failed_at").parse().ok(),
            reason: text_of(b"reason"),
            error: text_of(b"last_error"),
            failed: text_of(b"hook_failed").parse().unwrap_or(0),
            record: Record::parse(fields.into_iter()),
        }
    }
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
            HookEnd::Dropped => "dropped".to_owned(),
            HookEnd::Back => "back".to_owned(),
            HookEnd::Again(delay) => delay_ms(delay).to_string(),
        });
    }
    call.run(redis).await.map(drop)
}
