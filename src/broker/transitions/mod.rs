//! One function per Lua script, with typed input and output; `settle` for the five that end a lease.

mod adopt;
mod announce;
mod claim;
mod enqueue;
mod expire;
mod extend;
mod hooks;
mod lease;
pub(crate) mod operator;
mod progress;
mod promote;
mod publish;
mod record;
mod settle;
mod span;
mod sweep;
mod tick;
mod unblock;
mod wait;
mod weigh;

pub(crate) use adopt::adopt;
pub(crate) use announce::{announce, list_queues};
pub(crate) use claim::{Claim, ClaimRequest, ClaimedTask, claim};
pub(crate) use enqueue::{EnqueueAnswer, EnqueueItem, batch_len, enqueue};
pub(crate) use expire::{ExpiredTask, expire};
pub(crate) use extend::{Extended, extend};
pub(crate) use hooks::{
    DroppedHook, HookEnd, TakenHook, end_hooks, lapse_hooks, register_hooks, take_hooks,
};
pub(crate) use lease::{LeaseHolder, LeasedId};
pub(crate) use progress::progress;
pub(crate) use promote::promote;
pub(crate) use publish::{publish, retire};
pub(crate) use record::{Malformed, Record};
pub(crate) use settle::{Became, By, How, Settled, Settlement, batches, settle};
pub(crate) use sweep::{KeptBytes, SweepRequest, sweep};
pub(crate) use tick::{LostLease, Tick, TickRequest, tick};
pub(crate) use unblock::unblock;
pub(crate) use wait::{Watched, wait};
pub(crate) use weigh::weigh;
