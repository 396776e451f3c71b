//! What a lost lease costs a task, and what ends a row of them.
//!
//! A lease is lost here by dropping the future that runs a server. A rescuer, which claims nothing,
//! takes it back, so that the task can be looked at in peace.

use std::slice::from_ref;
use std::time::Duration;

use windlass::task::RawTask;
use windlass::{NewTask, Router, TaskError};

use crate::fixture::{Act, Settings, What};
use crate::support::{LIMIT, Stage, eventually, ms};

fn settings() -> Settings {
    Settings {
        retry_delay: ms(700),
        ..Settings::default()
    }
}

/// Runs the tasks on a server that vanishes, and waits until their leases have been taken back.
async fn lose(stage: &Stage, ids: &[String]) {
    let props = stage.props();
    let victim = props.hold(settings()).await;
    props
        .journal
        .wait_for(What::Started, ids.len(), LIMIT)
        .await;
    victim.vanish().await;
    eventually("the leases are taken back", LIMIT, async || {
        let census = stage.audit().await;
        (census.active == 0).then_some(()).ok_or(census)
    })
    .await;
}

async fn lost(stage: &Stage, id: &str) -> Option<String> {
    stage.field(id, "lost").await
}

async fn assert_retried(stage: &Stage, id: &str, times: u32) {
    let retried = stage.field(id, "retried").await;
    assert_eq!(retried.as_deref(), Some(&*times.to_string()));
}

#[tokio::test]
async fn lost_leases_in_a_row_are_retried_at_once_then_later_and_then_given_up() {
    let stage = Stage::new("row").await;
    let rescuer = stage.rescuer(settings()).await;
    let id = stage.enqueue(Act::Wait).await;

    lose(&stage, from_ref(&id)).await;
    assert_eq!(stage.state(&id).await, "pending", "the first: at once");
    assert_eq!(lost(&stage, &id).await.as_deref(), Some("1"));
    assert_retried(&stage, &id, 1).await;
    let error = stage.field(&id, "last_error").await.unwrap();
    assert!(error.starts_with("lease expired"), "{error}");

    lose(&stage, from_ref(&id)).await;
    assert_eq!(stage.state(&id).await, "retry", "the second: later");
    assert_eq!(lost(&stage, &id).await.as_deref(), Some("2"));
    assert_retried(&stage, &id, 2).await;
    let failed_at = stage.field(&id, "last_failed_at").await.unwrap();
    let due = stage.score("retry", &id).await.unwrap();
    let delay = due - failed_at.parse::<u64>().unwrap();
    // Redis rounds up to the next ms.
    assert!((700..=701).contains(&delay), "{delay}");
    // Though no server claims anything now.
    stage.wait_for_state(&id, "pending").await;

    lose(&stage, from_ref(&id)).await;
    assert_eq!(stage.state(&id).await, "archived", "the third: no more");
    assert_eq!(lost(&stage, &id).await.as_deref(), Some("3"));
    assert_eq!(
        stage.field(&id, "reason").await.as_deref(),
        Some("lease_expired")
    );
    assert_eq!(stage.total("archived_lease_expired").await, 1);
    assert_eq!(rescuer.stop().await.stats.recovered, 3);
}

#[tokio::test]
async fn a_lost_lease_without_a_retry_left_is_given_up() {
    let stage = Stage::new("exhausted").await;
    let rescuer = stage.rescuer(settings()).await;
    let none = stage.enqueue(NewTask::from(Act::Wait).max_retry(0)).await;
    let one = stage.enqueue(NewTask::from(Act::Wait).max_retry(1)).await;
    lose(&stage, &[none.clone(), one.clone()]).await;
    assert_eq!(stage.state(&none).await, "archived");
    assert_eq!(stage.state(&one).await, "pending");
    lose(&stage, from_ref(&one)).await;
    for id in [&none, &one] {
        assert_eq!(stage.state(id).await, "archived");
        let reason = stage.field(id, "reason").await;
        assert_eq!(reason.as_deref(), Some("lease_expired"));
    }
    rescuer.stop().await;
}

#[tokio::test]
async fn a_settle_ends_the_row() {
    let stage = Stage::new("row-ends").await;
    let rescuer = stage.rescuer(settings()).await;
    let ids = stage
        .enqueue_many(["fail", "snooze", "skip"].map(|kind| RawTask::new(kind, [])))
        .await;
    let [failed, snoozed, skipped] = &ids[..] else {
        unreachable!("three were enqueued");
    };
    lose(&stage, &ids).await;
    for id in &ids {
        assert_eq!(lost(&stage, id).await.as_deref(), Some("1"));
    }

    const LATER: Duration = Duration::from_millis(500);
    let router = Router::new()
        .raw("fail", async |_| -> Result<(), _> {
            Err(TaskError::retry_after("failed", LATER))
        })
        .raw("snooze", async |_| -> Result<(), _> {
            Err(TaskError::snooze(LATER))
        })
        .raw("skip", async |_| -> Result<(), _> {
            Err(TaskError::skip_retry("skipped"))
        });
    let server = stage.serve_briefly(settings(), router).await;
    eventually("each is settled once", LIMIT, async || {
        let stats = server.handle.stats();
        let settled = (stats.retried, stats.deferred, stats.archived) == (1, 1, 1);
        settled.then_some(()).ok_or(stats)
    })
    .await;
    server.stop().await;
    for id in &ids {
        assert_eq!(lost(&stage, id).await, None, "the row is over");
    }
    assert_eq!(stage.state(skipped).await, "archived");

    lose(&stage, &ids[..2]).await;
    for id in [failed, snoozed] {
        assert_eq!(lost(&stage, id).await.as_deref(), Some("1"), "a new row");
        assert_eq!(stage.state(id).await, "pending", "retried at once");
    }
    assert_eq!(rescuer.stop().await.stats.recovered, 5);
}

#[tokio::test]
async fn handing_a_task_back_does_not_end_the_row() {
    let stage = Stage::new("row-goes-on").await;
    let rescuer = stage.rescuer(settings()).await;
    let ids = stage.enqueue_many([Act::Wait]).await;
    let id = &ids[0];
    lose(&stage, &ids).await;
    assert_eq!(lost(&stage, id).await.as_deref(), Some("1"));

    let props = stage.props();
    let stops_at_once = Settings {
        shutdown_grace: ms(0),
        ..settings()
    };
    let server = props.serve(stops_at_once).await;
    props.journal.wait_for(What::Started, 1, LIMIT).await;
    assert_eq!(server.stop().await.stats.released, 1);
    assert_eq!(lost(&stage, id).await.as_deref(), Some("1"));
    assert_retried(&stage, id, 1).await;

    lose(&stage, &ids).await;
    assert_eq!(lost(&stage, id).await.as_deref(), Some("2"));
    assert_eq!(stage.state(id).await, "retry", "not at once any more");

    let stage = Stage::new("row-unknown").await;
    let second_rescuer = stage.rescuer(settings()).await;
    let ids = stage.enqueue_many([Act::Wait]).await;
    lose(&stage, &ids).await;
    let knows_nothing = Router::new().raw("other", async |_| Ok::<_, String>(()));
    let server = stage.serve_briefly(settings(), knows_nothing).await;
    stage.wait_for_state(&ids[0], "scheduled").await;
    assert_eq!(lost(&stage, &ids[0]).await.as_deref(), Some("1"));
    server.stop().await;
    rescuer.stop().await;
    second_rescuer.stop().await;
}
