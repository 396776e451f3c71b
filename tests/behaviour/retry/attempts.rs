//! Attempts are counted as their user counts them, until the retries are exhausted.

use std::time::Duration;

use windlass::task::RawTask;
use windlass::{Router, TaskContext};

use crate::support::{Seen, Stage, seen};

/// What the context said at one attempt.
#[derive(Debug, PartialEq)]
struct Attempt {
    number: u32,
    retried: u32,
    is_final: bool,
    lease: u64,
}

/// A router whose handler fails until the attempt of this number.
fn fails_until(success: u32) -> (Router, Seen<Attempt>) {
    let (says, attempts) = seen();
    let handler = move |_: RawTask, context: TaskContext| {
        let attempt = Attempt {
            number: context.attempt(),
            retried: context.retried(),
            is_final: context.is_final_attempt(),
            lease: context.lease(),
        };
        let said = says.send(attempt);
        async move {
            said.map_err(|error| error.to_string())?;
            match context.attempt() < success {
                true => Err(format!("failure {}", context.attempt())),
                false => Ok(()),
            }
        }
    };
    (Router::new().raw("tried", handler), attempts)
}

#[tokio::test]
async fn attempts_count_from_one_and_leases_grow() {
    let stage = Stage::new("attempts").await;
    let (router, mut attempts) = fails_until(4);
    let settings = stage.server().retry_delay(|_| Duration::from_millis(1));
    let server = stage.serve_with(settings, router).await;
    let task = RawTask::new("tried", "x");
    let id = stage.client().await.enqueue(task).await.unwrap().id;
    let attempts = attempts.take(4).await;
    let numbers: Vec<_> = attempts.iter().map(|a| (a.number, a.retried)).collect();
    assert_eq!(numbers, [(1, 0), (2, 1), (3, 2), (4, 3)]);
    assert!(attempts.iter().all(|attempt| !attempt.is_final));
    assert!(
        attempts
            .windows(2)
            .all(|pair| pair[0].lease < pair[1].lease)
    );
    stage.wait_for_state(&id, "gone").await;
    assert!(stage.record(&id).await.is_empty());
    stage.audit().await;
    let report = server.stop().await;
    assert_eq!((report.stats.completed, report.stats.retried), (1, 3));
    assert_eq!(
        (stage.total("processed").await, stage.total("failed").await),
        (4, 3)
    );
}

#[tokio::test]
async fn exhausted_retries_end_in_the_archive() {
    for retries in [0, 2] {
        let stage = Stage::new("exhausted").await;
        let (router, mut attempts) = fails_until(u32::MAX);
        let settings = stage.server().retry_delay(|_| Duration::ZERO);
        let server = stage.serve_with(settings, router).await;
        let enqueue = stage.client().await.enqueue(RawTask::new("tried", "x"));
        let id = enqueue.max_retry(retries).await.unwrap().id;
        let record = stage.wait_for_state(&id, "archived").await;
        let attempts = attempts.so_far();
        assert_eq!(attempts.len() as u32, retries + 1);
        assert_eq!(attempts.iter().filter(|a| a.is_final).count(), 1);
        assert!(attempts[retries as usize].is_final);
        assert_eq!(record["reason"], "retries_exhausted");
        assert_eq!(record["last_error"], format!("failure {}", retries + 1));
        assert_eq!(stage.total("archived_retries_exhausted").await, 1);
        stage.audit().await;
        assert_eq!(server.stop().await.stats.archived, 1);
    }
}
