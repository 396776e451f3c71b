use crate::broker::{
    Archival, BrokerError, By, Completion, Deferral, LeasedId, Link, Queue, Releasal, Retrial,
    Settled, archive, complete, defer, release, retry,
};
use crate::defaults::{SCRIPT_RECORDS, SCRIPT_TASKS};
use crate::server::observe::stats::{Counter, Counters};
use crate::server::run::running::RunNumber;

/// The end of a run, on its way to Redis.
#[derive(Debug)]
pub(crate) struct Settlement {
    pub(crate) run: RunNumber,
    pub(crate) end: End,
}

/// How a run ends.
#[derive(Debug)]
pub(crate) enum End {
    /// Done, or revoked by its handler: the task is gone.
    Complete(Completion),
    Retry(Retrial),
    Archive(Archival),
    Defer(Deferral),
    Release(Releasal),
}

/// What one way to end has of its own.
pub(crate) trait Ending: Clone {
    fn task(&self) -> &LeasedId;

    /// Where tasks that ended so are counted.
    fn counter(counters: &Counters) -> &Counter;

    /// About how many bytes it adds to a script call, where that may be many.
    fn bytes(&self) -> usize {
        0
    }

    /// How many go in one script call.
    const AT_ONCE: usize = SCRIPT_RECORDS;

    /// Whether its dead-letter hook may be owed now.
    const MAY_OWE_HOOK: bool = false;

    /// Until the task is due again.
    fn due_in(&self) -> Option<std::time::Duration> {
        None
    }

    async fn send(link: &Link, queue: &Queue, tasks: &[Self]) -> Result<Vec<Settled>, BrokerError>;
}

impl Ending for Completion {
    // Reads few records.
    const AT_ONCE: usize = SCRIPT_TASKS;

    fn task(&self) -> &LeasedId {
        &self.task
    }

    fn counter(counters: &Counters) -> &Counter {
        &counters.completed
    }

    fn bytes(&self) -> usize {
        self.result.as_ref().map_or(0, Vec::len)
    }

    async fn send(link: &Link, queue: &Queue, tasks: &[Self]) -> Result<Vec<Settled>, BrokerError> {
        complete(link, queue, tasks).await
    }
}

impl Ending for Retrial {
    // A retry that would come after its deadline is archived.
    const MAY_OWE_HOOK: bool = true;

    fn task(&self) -> &LeasedId {
        &self.task
    }

    fn counter(counters: &Counters) -> &Counter {
        &counters.retried
    }

    fn due_in(&self) -> Option<std::time::Duration> {
        Some(self.delay)
    }

    async fn send(link: &Link, queue: &Queue, tasks: &[Self]) -> Result<Vec<Settled>, BrokerError> {
        retry(link, queue, By::Holder, tasks).await
    }
}

impl Ending for Archival {
    const MAY_OWE_HOOK: bool = true;

    fn task(&self) -> &LeasedId {
        &self.task
    }

    fn counter(counters: &Counters) -> &Counter {
        &counters.archived
    }

    async fn send(link: &Link, queue: &Queue, tasks: &[Self]) -> Result<Vec<Settled>, BrokerError> {
        archive(link, queue, By::Holder, tasks).await
    }
}

impl Ending for Deferral {
    fn task(&self) -> &LeasedId {
        &self.task
    }

    fn counter(counters: &Counters) -> &Counter {
        &counters.deferred
    }

    fn due_in(&self) -> Option<std::time::Duration> {
        Some(self.delay)
    }

    async fn send(link: &Link, queue: &Queue, tasks: &[Self]) -> Result<Vec<Settled>, BrokerError> {
        defer(link, queue, tasks).await
    }
}

impl Ending for Releasal {
    fn task(&self) -> &LeasedId {
        &self.task
    }

    fn counter(counters: &Counters) -> &Counter {
        &counters.released
    }

    async fn send(link: &Link, queue: &Queue, tasks: &[Self]) -> Result<Vec<Settled>, BrokerError> {
        release(link, queue, tasks).await
    }
}
