//! A payload's bytes are the same at the end of every path.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass::task::RawTask;
use windlass::{Client, NewTask, Router, Task, TaskContext, TaskError};

use crate::support::{Stage, seen};

const LARGE: usize = 5 << 20;

fn payloads() -> Vec<Vec<u8>> {
    vec![
        Vec::new(),
        vec![0],
        b"a\0b\0".to_vec(),
        vec![0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80],
        (0..=255).collect(),
        b"9007199254740993 18446744073709551615 1e400 nil false".to_vec(),
        b"\r\n*1\r\n$4\r\nPING\r\n".to_vec(),
        (0..LARGE).map(|i| (i % 251) as u8).collect(),
    ]
}

/// What a handler does at the first attempt, so that its task takes a certain path.
async fn take_path(context: &TaskContext, path: &str) -> Result<(), TaskError> {
    match (path, context.attempt()) {
        ("retried", 1) => Err(TaskError::retry_after(
            "once more",
            Duration::from_millis(1),
        )),
        ("at once", 1) => Err(TaskError::retry_after("once more", Duration::ZERO)),
        _ => Ok(()),
    }
}

async fn large_client(stage: &Stage) -> Client {
    let builder = stage.client_builder().max_payload(LARGE);
    builder.connect().await.unwrap()
}

#[tokio::test]
async fn bytes_come_through_every_path_unchanged() {
    let stage = Stage::new("bytes").await;
    let client = large_client(&stage).await;
    let (says, mut arrived) = seen();
    let handler = move |task: RawTask, context: TaskContext| {
        let says = says.clone();
        async move {
            let path = context.id().split(' ').next().unwrap_or_default();
            take_path(&context, path).await?;
            let said = says.send((context.id().to_owned(), task.payload));
            said.map_err(TaskError::skip_retry)
        }
    };
    let paths = ["now", "delayed", "many", "retried", "at once"];
    let mut sent = Vec::new();
    for path in paths {
        for (i, payload) in payloads().into_iter().enumerate() {
            let id = format!("{path} {i}");
            let mut task = NewTask::from(RawTask::new("bytes", payload.clone())).id(&id);
            if path == "delayed" {
                task = task.delay(Duration::from_millis(20));
            }
            let enqueued = match path {
                "many" => client.enqueue_many([task]).await.remove(0),
                _ => client.enqueue(task).await,
            };
            assert!(enqueued.unwrap().is_new());
            sent.push((id, payload));
        }
    }
    let server = stage
        .serve_with(stage.server(), Router::new().raw("bytes", handler))
        .await;
    let mut arrived = arrived.take(sent.len()).await;
    arrived.sort_unstable();
    sent.sort_unstable();
    for (sent, arrived) in sent.into_iter().zip(arrived) {
        assert_eq!(sent.0, arrived.0);
        assert!(sent.1 == arrived.1, "the payload of {} has changed", sent.0);
    }
    server.stop().await;
}

#[tokio::test]
async fn bytes_come_through_a_release_and_a_snooze_unchanged() {
    let stage = Stage::new("handed-back").await;
    let client = large_client(&stage).await;
    let router = |again: bool, says: tokio::sync::mpsc::UnboundedSender<_>| {
        Router::new().raw("bytes", move |task: RawTask, context: TaskContext| {
            let says = says.clone();
            async move {
                says.send((context.id().to_owned(), task.payload))
                    .map_err(TaskError::skip_retry)?;
                match (again, context.id().starts_with("snoozed")) {
                    (false, true) => Err(TaskError::snooze(Duration::from_millis(1))),
                    (false, false) => std::future::pending().await,
                    (true, _) => Ok(()),
                }
            }
        })
    };
    for (i, payload) in payloads().into_iter().enumerate() {
        for path in ["snoozed", "released"] {
            let task = NewTask::from(RawTask::new("bytes", payload.clone()));
            client
                .enqueue(task)
                .id(format!("{path} {i}"))
                .await
                .unwrap();
        }
    }
    let (says, mut first) = seen();
    let settings = || {
        stage
            .server()
            .shutdown_grace(Duration::ZERO)
            .cancel_grace(Duration::ZERO)
    };
    let server = stage.serve_with(settings(), router(false, says)).await;
    first.take(2 * payloads().len()).await;
    let report = server.stop().await;
    assert!(
        report.stats.released > 0 && report.stats.deferred > 0,
        "{report:?}"
    );
    let (says, mut second) = seen();
    let server = stage.serve_with(settings(), router(true, says)).await;
    for (id, payload) in second.take(2 * payloads().len()).await {
        let number: usize = id.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(
            payload == payloads()[number],
            "the payload of {id} has changed"
        );
    }
    server.stop().await;
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Values {
    unsigned: Vec<u64>,
    signed: Vec<i64>,
    float: f64,
    text: String,
    nothing: Option<u8>,
    bytes: Vec<u8>,
    wide: u128,
    source: IpAddr,
    event: Event,
    #[serde(flatten)]
    target: Target,
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(tag = "type")]
enum Event {
    Login { from: IpAddr },
    Count { number: u128 },
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Target {
    target: IpAddr,
}

impl Task for Values {
    const KIND: &'static str = "values";
}

fn values() -> Values {
    let address = IpAddr::from([127, 0, 0, 1]);
    Values {
        unsigned: vec![0, (1 << 53) + 1, u64::MAX],
        signed: vec![i64::MIN, -(1 << 53) - 1, i64::MAX],
        float: f64::MIN_POSITIVE,
        text: "ü\0\u{1f}\u{10ffff}".into(),
        nothing: None,
        bytes: (0..=255).collect(),
        wide: u128::MAX,
        source: address,
        event: Event::Login { from: address },
        target: Target { target: address },
    }
}

#[tokio::test]
async fn typed_values_come_through_unchanged() {
    let stage = Stage::new("values").await;
    let (says, mut arrived) = seen();
    let handler = move |task: Values, context: TaskContext| {
        let says = says.clone();
        async move {
            take_path(&context, "retried").await?;
            says.send(task)
                .map_err(|_| TaskError::skip_retry("nobody listens"))
        }
    };
    let server = stage
        .serve_with(stage.server(), Router::new().task(handler))
        .await;
    stage.client().await.enqueue(values()).await.unwrap();
    assert_eq!(arrived.next().await, values());
    server.stop().await;
}

#[tokio::test]
async fn a_value_that_no_worker_could_read_is_refused_by_its_type() {
    let stage = Stage::new("unreadable").await;
    let event = Event::Count { number: 1 };
    let enqueue = stage.client().await.enqueue(Values { event, ..values() });
    let error = enqueue.await.unwrap_err().to_string();
    assert!(error.contains("round_trips::Values"), "{error}");
    assert_eq!(stage.keys("").await, [""; 0], "nothing was sent");
}
