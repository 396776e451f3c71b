//! What an operator is told, for each wish and each state.

use windlass::Inspector;
use windlass::inspector::{CancelMode, ChangeOutcome, InspectError};
use windlass::task::{PayloadError, RawTask};

use crate::support::{Call, HOUR, Running, Stage, task};

const STATES: [&str; 7] = [
    "unknown",
    "pending",
    "scheduled",
    "retry",
    "active",
    "archived",
    "completed",
];

/// One task in each state, with the state's name as its id; and the one that runs.
async fn in_every_state(stage: &Stage) -> (Running, Call) {
    let client = stage.client().await;
    let (server, mut calls) = stage.serve_puppet().await;
    for state in ["completed", "archived", "retry", "scheduled", "active"] {
        let enqueue = client.enqueue(task("x")).id(state).retention(HOUR);
        if state == "scheduled" {
            enqueue.delay(HOUR).await.unwrap();
            continue;
        }
        enqueue.await.unwrap();
        let call = calls.next().await;
        match state {
            "completed" => call.complete(),
            "archived" => call.skip(),
            "retry" => call.retry_after(HOUR),
            _ => {
                stage.pause().await;
                client.enqueue(task("x")).id("pending").await.unwrap();
                return (server, call);
            }
        }
        stage.wait_for_state(state, state).await;
    }
    unreachable!()
}

/// Does it to the task in each state. The rows say for states what is answered, and where the task
/// then is.
async fn assert_each(
    stage: &Stage,
    wish: impl AsyncFn(Inspector, &'static str) -> Result<ChangeOutcome, InspectError>,
    rows: [(&str, &str, &str); 5],
) {
    let (server, call) = in_every_state(stage).await;
    for state in STATES {
        let answer = wish(stage.inspector().await, state).await.unwrap();
        if let ChangeOutcome::Requested { server: told, .. } = &answer {
            assert_eq!(told, server.handle.id());
        }
        let answer = format!("{answer:?}");
        let answer = answer.split(' ').next().unwrap();
        let row = rows.iter().find(|row| row.0.split(' ').any(|s| s == state));
        let (_, wanted, place) = *row.expect("a row for each state");
        let place = if place == "as it was" { state } else { place };
        assert_eq!(
            (answer, stage.state(state).await),
            (wanted, place),
            "{state}"
        );
    }
    call.complete();
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn run() {
    let stage = Stage::new("run").await;
    let run = async |inspector: Inspector, id| inspector.run("default", id).await;
    let rows = [
        ("unknown", "NotFound", "gone"),
        ("pending", "Already", "as it was"),
        ("scheduled retry archived", "Done", "pending"),
        ("active", "Active", "as it was"),
        ("completed", "Completed", "as it was"),
    ];
    assert_each(&stage, run, rows).await;
    // From the archive it starts anew.
    let record = stage.record("archived").await;
    assert_eq!((record.get("reason"), record.get("retried")), (None, None));
}

#[tokio::test]
async fn archive() {
    let stage = Stage::new("archive").await;
    let archive = async |inspector: Inspector, id| inspector.archive("default", id).await;
    let rows = [
        ("unknown", "NotFound", "gone"),
        ("pending scheduled retry", "Done", "archived"),
        ("active", "Requested", "as it was"),
        ("archived", "Already", "as it was"),
        ("completed", "Completed", "as it was"),
    ];
    assert_each(&stage, archive, rows).await;
    for id in ["pending", "scheduled", "retry"] {
        assert_eq!(stage.record(id).await["reason"], "operator");
    }
    assert_eq!(stage.record("archived").await["reason"], "skipped");
}

#[tokio::test]
async fn delete() {
    let stage = Stage::new("delete").await;
    let delete = async |inspector: Inspector, id| inspector.delete("default", id).await;
    let rows = [
        ("unknown", "NotFound", "gone"),
        ("pending scheduled retry", "Done", "gone"),
        ("active", "Requested", "as it was"),
        ("archived", "Done", "gone"),
        ("completed", "Done", "gone"),
    ];
    assert_each(&stage, delete, rows).await;
    // The one that ran was completed by its handler, which keeps its result.
    assert_eq!(stage.keys("t:").await, [stage.record_key("active")]);
}

#[tokio::test]
async fn edit() {
    let stage = Stage::new("edit").await;
    let edit = async |inspector: Inspector, id| inspector.edit("default", id, task("new")).await;
    let rows = [
        ("unknown", "NotFound", "gone"),
        ("pending scheduled retry", "Done", "as it was"),
        ("active", "Active", "as it was"),
        ("archived", "Done", "as it was"),
        ("completed", "Completed", "as it was"),
    ];
    assert_each(&stage, edit, rows).await;
    for id in &STATES[1..] {
        let new = !["active", "completed"].contains(id);
        let payload = &stage.record(id).await["payload"];
        assert_eq!(payload, if new { "new" } else { "x" }, "{id}");
    }
}

#[tokio::test]
async fn an_edit_keeps_the_kind() {
    let stage = Stage::new("edit-kind").await;
    let client = stage.client().await;
    client.enqueue(task("x")).id("it").await.unwrap();
    let other = RawTask::new("another", "new");
    let answer = stage.inspector().await.edit("default", "it", other).await;
    let record = stage.record("it").await;
    let answer = answer.unwrap();
    assert!(
        matches!(&answer, ChangeOutcome::OtherKind { kind, .. } if *kind == record["kind"]),
        "{answer:?}"
    );
    assert_eq!(record["payload"], "x");
}

#[tokio::test]
async fn cancel() {
    for mode in [CancelMode::Decide, CancelMode::Archive, CancelMode::Delete] {
        assert_cancel(mode).await;
    }
}

async fn assert_cancel(mode: CancelMode) {
    let stage = Stage::new("cancel").await;
    let cancel = async |inspector: Inspector, id| inspector.cancel("default", id, mode).await;
    let ended = match mode {
        CancelMode::Delete => "gone",
        _ => "archived",
    };
    let rows = [
        ("unknown", "NotFound", "gone"),
        ("pending scheduled retry", "Done", ended),
        ("active", "Requested", "as it was"),
        ("archived", "Already", "as it was"),
        ("completed", "Completed", "as it was"),
    ];
    assert_each(&stage, cancel, rows).await;
    // What has ended keeps all that it left.
    assert_eq!(stage.record("archived").await["reason"], "skipped");
    assert!(stage.record("completed").await.contains_key("result"));
}

#[tokio::test]
async fn look() {
    let stage = Stage::new("look").await;
    let (server, call) = in_every_state(&stage).await;
    for state in STATES {
        let task = stage.look(state).await;
        assert_eq!(task.is_some(), state != "unknown", "{state}");
        if let Some(task) = task {
            assert_eq!(task.state.as_str(), state);
            assert_eq!(
                (&*task.id, &*task.kind, &*task.queue),
                (state, "kind", "default")
            );
            assert_eq!(task.payload, b"x");
            assert_eq!(task.server.is_some(), state == "active");
        }
    }
    call.complete();
    server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let stage = Stage::new("refused").await;
    let inspector = stage.inspector().await;
    for (queue, id) in [("a:b", "id"), ("default", "{id}"), ("default", "")] {
        let refused = inspector.cancel(queue, id, CancelMode::Decide).await;
        assert!(
            matches!(refused, Err(InspectError::Name(_))),
            "{queue} {id}"
        );
    }
    stage.enqueue_for_later("it").await;
    let large = RawTask::new("kind", vec![0; 1024 * 1024 + 1]);
    let refused = inspector.edit("default", "it", large).await;
    assert!(matches!(
        refused,
        Err(InspectError::Payload(PayloadError::TooLarge { .. }))
    ));
    assert!(
        Inspector::connect(stage.config().prefix("a:b"))
            .await
            .is_err()
    );
    assert_eq!(stage.record("it").await["payload"], "x");
}
