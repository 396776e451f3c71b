//! Payloads keep every byte on every way that a task can take.

use std::time::Duration;

use windlass::inspector::{CancelMode, ChangeOutcome};
use windlass::task::RawTask;
use windlass::{Client, NewTask, Unique};

use crate::support::{HOUR, Stage, ms, puppet, task};

const MIB: usize = 1024 * 1024;

fn payloads() -> Vec<Vec<u8>> {
    let mut large = Vec::with_capacity(5 * MIB);
    let mut state = 1u32;
    while large.len() < 5 * MIB {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        large.extend_from_slice(&state.to_be_bytes());
    }
    vec![
        Vec::new(),
        vec![0],
        vec![0; 1000],
        b"\xff\xfe\x80 not UTF-8 \xc3\x28".to_vec(),
        (0..=255).collect(),
        b"$5\r\nhello\r\n{}:\"' \\".to_vec(),
        // 2^53 + 1 and the largest integer, in MessagePack.
        b"\x92\xcf\x00\x20\x00\x00\x00\x00\x00\x01\xcf\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
        large,
    ]
}

async fn client(stage: &Stage) -> Client {
    let client = stage.client_builder();
    client.max_payload(8 * MIB).connect().await.unwrap()
}

#[track_caller]
fn assert_same(seen: &[u8], sent: &[u8]) {
    // Without printing 5 MiB.
    assert!(seen == sent, "{} bytes came as {}", sent.len(), seen.len());
}

#[tokio::test]
async fn through_a_replacement() {
    let stage = Stage::new("replace").await;
    let client = client(&stage).await;
    let (server, mut calls) = stage.serve_puppet().await;
    for payload in payloads() {
        let enqueue = |payload: &[u8], delay| {
            let enqueue = client.enqueue(task(payload)).delay(delay);
            enqueue.unique(Unique::replace().key("key"))
        };
        let first = enqueue(b"first", HOUR).await.unwrap();
        assert!(first.is_new());
        enqueue(&payload, HOUR).await.unwrap();
        assert_same(&stage.look(&first.id).await.unwrap().payload, &payload);
        enqueue(b"second", HOUR).await.unwrap();
        enqueue(&payload, Duration::ZERO).await.unwrap();
        let call = calls.next().await;
        assert_same(&call.task.payload, &payload);
        call.complete();
        stage.wait_for_state(&first.id, "gone").await;
    }
    server.stop().await;
}

#[tokio::test]
async fn through_the_key_of_a_lock() {
    let stage = Stage::new("lock").await;
    let client = client(&stage).await;
    let mut ids = Vec::new();
    for payload in payloads() {
        let enqueue = || client.enqueue(task(&*payload)).unique(Unique::until_done());
        let first = enqueue().await.unwrap();
        assert!(first.is_new());
        assert_eq!(enqueue().await.unwrap().id, first.id);
        ids.push(first.id);
    }
    assert_eq!(stage.keys("unique:").await.len(), ids.len());
}

#[tokio::test]
async fn through_an_edit() {
    let stage = Stage::new("edit").await;
    let client = client(&stage).await;
    let inspector = stage.inspector().await;
    let (server, mut calls) = stage.serve_puppet().await;
    for payload in payloads()
        .into_iter()
        .filter(|payload| payload.len() <= MIB)
    {
        let enqueued = client.enqueue(task("before")).delay(HOUR).await;
        let id = enqueued.unwrap().id;
        let edit = inspector.edit("default", &id, task(&*payload));
        assert_eq!(edit.await.unwrap(), ChangeOutcome::Done);
        assert_same(&stage.look(&id).await.unwrap().payload, &payload);
        inspector.run("default", &id).await.unwrap();
        let call = calls.next().await;
        assert_same(&call.task.payload, &payload);
        call.complete();
    }
    server.stop().await;
}

#[tokio::test]
async fn through_the_archive_a_hook_and_back() {
    let stage = Stage::new("archive").await;
    let client = client(&stage).await;
    let inspector = stage.inspector().await;
    let (router, mut calls) = puppet();
    let (says, mut letters) = tokio::sync::mpsc::unbounded_channel();
    let router = router.on_dead_letter("kind", move |letter| {
        let _ = says.send(letter);
        async { Ok::<_, String>(()) }
    });
    let server = stage.serve(router).await;
    for payload in payloads() {
        let id = client.enqueue(task(&*payload)).await.unwrap().id;
        calls.next().await.skip();
        let letter = letters.recv().await.unwrap();
        assert_same(&letter.payload, &payload);
        stage.wait_for_count("hooks", 0).await;
        assert_same(&stage.look(&id).await.unwrap().payload, &payload);
        assert_eq!(
            inspector.run("default", &id).await.unwrap(),
            ChangeOutcome::Done
        );
        let call = calls.next().await;
        assert_same(&call.task.payload, &payload);
        call.complete();
    }
    server.stop().await;
}

#[tokio::test]
async fn of_all_hooks_that_are_owed_at_once() {
    let stage = Stage::new("hooks").await;
    let client = client(&stage).await;
    let inspector = stage.inspector().await;
    let (router, _calls) = puppet();
    let (says, mut letters) = tokio::sync::mpsc::unbounded_channel();
    let router = router.on_dead_letter("kind", move |letter| {
        let _ = says.send(letter);
        async { Ok::<_, String>(()) }
    });
    drop(stage.server().build(router.clone()).await.unwrap());
    let payloads = payloads();
    let twice = payloads.iter().chain(&payloads);
    let tasks = twice.enumerate().map(|(n, payload)| {
        NewTask::from(RawTask::new("kind", &**payload))
            .id(n.to_string())
            .delay(HOUR)
    });
    assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    for n in 0..2 * payloads.len() {
        let id = n.to_string();
        let cancel = inspector.cancel("default", &id, CancelMode::Archive);
        assert_eq!(cancel.await.unwrap(), ChangeOutcome::Done);
    }
    let server = stage.serve(router).await;
    for _ in 0..2 * payloads.len() {
        let letter = letters.recv().await.unwrap();
        let n: usize = letter.id.parse().unwrap();
        assert_same(&letter.payload, &payloads[n % payloads.len()]);
    }
    stage.wait_for_count("hooks", 0).await;
    server.stop().await;
}

#[tokio::test]
async fn through_retries_snoozes_and_lost_leases() {
    let stage = Stage::new("again").await;
    let client = client(&stage).await;
    let (server, mut calls) = stage.serve_puppet().await;
    for payload in payloads() {
        let id = client.enqueue(task(&*payload)).await.unwrap().id;
        for way in ["retry", "snooze", "lose"] {
            let call = calls.next().await;
            assert_same(&call.task.payload, &payload);
            match way {
                "retry" => call.retry_after(ms(1)),
                "snooze" => call.snooze(ms(1)),
                _ => {
                    stage.lose(&id).await;
                    call.cancelled().await;
                }
            }
        }
        let call = calls.next().await;
        assert_same(&call.task.payload, &payload);
        call.complete();
    }
    server.stop().await;
}
