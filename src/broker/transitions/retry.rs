use std::sync::LazyLock;
use std::time::Duration;

use super::super::script::Script;
use super::super::{BrokerError, Query, Queue};
use super::LeasedId;
use super::settle::{By, Settled, settle};
use super::span::delay_ms;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new("retry", include_str!("../../../lua/retry.lua")));

/// A failed try that is to be repeated.
#[derive(Debug, Clone)]
pub(crate) struct Retrial {
    pub(crate) task: LeasedId,
    /// Zero: at once.
    pub(crate) delay: Duration,
    /// Whether it raises `retried`.
    pub(crate) spends_retry: bool,
    /// How many leases were lost in a row, this one included; `None` when this one was not lost.
    pub(crate) lost: Option<u32>,
    pub(crate) error: String,
}

/// active → retry, or → pending when the delay is zero.
pub(crate) async fn retry(
    redis: &impl Query,
    queue: &Queue,
    by: By,
    tasks: &[Retrial],
) -> Result<Vec<Settled>, BrokerError> {
    let mut call = SCRIPT.on(&queue.base);
    call.arg(by.arg());
    for retrial in tasks {
        call.arg(&*retrial.task.id)
            .arg(retrial.task.holder.as_str())
            .arg(delay_ms(retrial.delay))
            .arg(u8::from(retrial.spends_retry))
            .arg(retrial.lost.map_or(String::new(), |n| n.to_string()))
            .arg(&retrial.error);
    }
    settle(&SCRIPT, &call, redis, tasks.len()).await
}
