//! Locks that let only one task with a key into a queue.

use std::time::Duration;

use windlass::client::{EnqueueOutcome, Enqueued};
use windlass::{Client, Unique};

use crate::support::{HOUR, task};

mod ends;
mod keys;
mod modes;
mod operator;
mod refused;
mod replace;
mod superseded;
mod times;

/// A task with this lock, under the key `key`.
async fn enqueue(client: &Client, unique: Unique) -> Enqueued {
    let enqueued = client.enqueue(task("x")).unique(unique.key("key")).await;
    enqueued.expect("Redis takes it")
}

/// A task with this lock that the test never sees run, unless it makes it.
async fn enqueue_later(client: &Client, id: &str, unique: Unique) -> Enqueued {
    let enqueue = client.enqueue(task("x")).id(id).delay(HOUR);
    let enqueued = enqueue.unique(unique.key("key")).await;
    enqueued.expect("Redis takes it")
}

#[track_caller]
fn assert_duplicate_of(holder: &str, enqueued: &Enqueued) {
    let seen = (&*enqueued.id, enqueued.outcome);
    assert_eq!(seen, (holder, EnqueueOutcome::Duplicate));
}

/// The lock that `enqueue` and `enqueue_later` take.
const LOCK: &str = "unique:kind{key}";

fn every_mode() -> [(&'static str, Unique); 4] {
    [
        ("done", Unique::until_done()),
        ("started", Unique::until_started()),
        ("time", Unique::for_time(Duration::from_secs(600))),
        ("replace", Unique::replace()),
    ]
}
