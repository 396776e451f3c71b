use std::sync::LazyLock;

use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};
use super::LeasedId;
use super::settle::{By, Settled, settle};

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("archive", include_str!("../../../lua/archive.lua")));

/// Why a task is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArchiveReason {
    RetriesExhausted,
    LeaseExpired,
    Skipped,
    Undecodable,
    UnknownKind,
    Malformed,
}

impl ArchiveReason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::RetriesExhausted => "retries_exhausted",
            Self::LeaseExpired => "lease_expired",
            Self::Skipped => "skipped",
            Self::Undecodable => "undecodable",
            Self::UnknownKind => "unknown_kind",
            Self::Malformed => "malformed",
        }
    }
}

/// A task that is given up.
#[derive(Debug, Clone)]
pub(crate) struct Archival {
    pub(crate) task: LeasedId,
    pub(crate) reason: ArchiveReason,
    /// As in [`Retrial`](super::Retrial).
    pub(crate) lost: Option<u32>,
    pub(crate) error: String,
}

/// active → archived.
pub(crate) async fn archive(
    redis: &impl Query,
    queue: &Queue,
    by: By,
    tasks: &[Archival],
) -> Result<Vec<Settled>, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(by.arg());
    for archival in tasks {
        call.arg(&*archival.task.id)
            .arg(archival.task.holder.as_str())
            .arg(archival.reason.as_str())
            .arg(archival.lost.map_or(String::new(), |n| n.to_string()))
            .arg(&archival.error);
    }
    settle(&SCRIPT, &call, redis, tasks.len()).await
}
