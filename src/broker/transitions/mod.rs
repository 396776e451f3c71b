//! One function per Lua script, with typed input and output.

mod announce;
mod archive;
mod claim;
mod complete;
mod defer;
mod enqueue;
mod extend;
mod lease;
mod promote;
mod publish;
mod record;
mod release;
mod retry;
mod settle;
mod tick;

pub(crate) use announce::{announce, list_queues};
pub(crate) use archive::{Archival, ArchiveReason, archive};
pub(crate) use claim::{Claim, ClaimRequest, ClaimedTask, claim};
pub(crate) use complete::complete;
pub(crate) use defer::{Deferral, defer};
pub(crate) use enqueue::{EnqueueItem, enqueue};
pub(crate) use extend::extend;
pub(crate) use lease::{LeaseHolder, LeasedId};
pub(crate) use promote::promote;
pub(crate) use publish::{publish, retire};
pub(crate) use record::{Malformed, Record};
pub(crate) use release::{Releasal, release};
pub(crate) use retry::{Retrial, retry};
pub(crate) use settle::{By, Settled};
pub(crate) use tick::{LostLease, TickRequest, tick};
