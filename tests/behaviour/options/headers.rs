//! Texts that travel with a task.

use std::time::Duration;

use windlass::client::EnqueueError;
use windlass::task::InvalidTask;

use crate::support::{Stage, task};

const CAP: usize = 16 * 1024;

#[tokio::test]
async fn headers_reach_every_try_as_they_were_given() {
    let stage = Stage::new("headers").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let given = [
        ("trace", "00-4bf9-01"),
        ("h:trace", "another name"),
        ("kind", "no field of the record's"),
        ("payload", ""),
        ("Ünïcode: ", "line\nline\0\u{1f9f5}"),
    ];
    let mut enqueue = client.enqueue(task("x"));
    for (name, value) in given {
        enqueue = enqueue.header(name, value);
    }
    enqueue.await.unwrap();
    for attempt in 1..=3 {
        let call = calls.next().await;
        assert_eq!(call.context.attempt(), attempt);
        for (name, value) in given {
            assert_eq!(call.context.header(name), Some(value), "{name:?}");
        }
        assert_eq!(call.context.header("Trace"), None);
        assert_eq!(call.context.headers().count(), given.len());
        assert_eq!(call.payload(), "x");
        call.retry_after(Duration::ZERO);
    }
    calls.next().await.complete();
    server.stop().await;
}

#[tokio::test]
async fn a_header_of_the_same_name_replaces_the_one_before() {
    let stage = Stage::new("same-name").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    let enqueue = client.enqueue(task("x")).header("a", "1").header("b", "2");
    enqueue.header("a", "3").await.unwrap();
    let call = calls.next().await;
    let mut headers: Vec<_> = call.context.headers().collect();
    headers.sort_unstable();
    assert_eq!(headers, [("a", "3"), ("b", "2")]);
    call.complete();
    server.stop().await;
}

#[tokio::test]
async fn headers_have_a_cap_that_names_itself() {
    let stage = Stage::new("cap").await;
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    // Names and values count.
    let full = "v".repeat(CAP / 2 - 4);
    let enqueue = client.enqueue(task("x")).header("name", &full);
    let fits = enqueue.header("more", &full).await;
    assert!(fits.unwrap().is_new());
    let call = calls.next().await;
    assert_eq!(call.context.header("more"), Some(&*full));
    call.complete();

    let enqueue = client.enqueue(task("x")).header("name", &full);
    let error = enqueue.header("more", full + "v").await.unwrap_err();
    let EnqueueError::Invalid(error) = error else {
        panic!("{error}");
    };
    assert!(
        matches!(*error, InvalidTask::Headers(bytes) if bytes == CAP + 1),
        "{error}"
    );
    assert!(error.to_string().contains("16384"), "{error}");
    for name in ["", " ", "a\nb", &"n".repeat(257)] {
        let refused = client.enqueue(task("x")).header(name, "v").await;
        assert!(matches!(refused, Err(EnqueueError::Invalid(_))), "{name:?}");
    }
    server.stop().await;
}
