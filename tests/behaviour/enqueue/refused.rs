//! Tasks that are refused before anything is sent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::AsyncCommands;
use windlass::client::{Enqueue, EnqueueError};
use windlass::defaults;
use windlass::task::{InvalidTask, PayloadError, RawTask};

use crate::support::Stage;

const CENTURY: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

#[tokio::test]
async fn a_bad_task_is_named_and_leaves_nothing() {
    let stage = Stage::new("refused").await;
    let client = stage.client().await;
    let task = || client.enqueue(RawTask::new("kind", "x"));
    let second = Duration::from_secs(1);
    let forms: Vec<(&str, Enqueue)> = vec![
        ("priority 10", task().priority(10)),
        ("timeout 0ns", task().timeout(Duration::ZERO)),
        ("timeout", task().timeout(Duration::from_micros(999))),
        ("timeout", task().timeout(CENTURY + second)),
        ("due time", task().delay(CENTURY + second)),
        ("due time", task().delay(Duration::MAX)),
        ("due time", task().run_at(UNIX_EPOCH - second)),
        (
            "due time",
            task().run_at(SystemTime::now() + CENTURY + second),
        ),
        ("queue \"a:b\"", task().queue("a:b")),
        ("queue \"\"", task().queue("")),
        ("id \"{}\"", task().id("{}")),
        ("id \"\\n\"", task().id("\n")),
        ("is longer than 256 bytes", task().id("x".repeat(257))),
        ("kind \"k}\"", client.enqueue(RawTask::new("k}", "x"))),
    ];
    for (words, form) in forms {
        let error = form.await.expect_err(words);
        let EnqueueError::Invalid(invalid) = &error else {
            panic!("{words}: {error:?}");
        };
        assert!(invalid.to_string().contains(words), "{words}: {invalid}");
    }
    let keys: Vec<String> = stage
        .redis()
        .keys(format!("{}:*", stage.prefix))
        .await
        .unwrap();
    assert!(keys.is_empty(), "{keys:?}");
}

#[tokio::test]
async fn a_payload_may_be_as_large_as_the_cap() {
    let stage = Stage::new("cap").await;
    let client = stage.client().await;
    let full = RawTask::new("kind", vec![0; defaults::MAX_PAYLOAD]);
    assert!(client.enqueue(full).await.unwrap().is_new());
    let more = RawTask::new("kind", vec![0; defaults::MAX_PAYLOAD + 1]);
    let EnqueueError::Invalid(invalid) = client.enqueue(more).await.unwrap_err() else {
        panic!("the cap is checked before anything is sent");
    };
    assert!(matches!(
        *invalid,
        InvalidTask::Payload(PayloadError::TooLarge { bytes, cap, .. }) if bytes == cap + 1
    ));
    assert_eq!(stage.count("pending").await, 1);
}
