//! The archive's caps by count and by age.

use std::time::Duration;

use redis::AsyncCommands;

use super::sweeper;
use crate::support::{HOUR, LIMIT, Stage, eventually, puppet, task};

/// Enqueues and archives these, the first one first.
async fn archive(stage: &Stage, ids: impl Iterator<Item = u64>) {
    let inspector = stage.inspector().await;
    for id in ids {
        let id = format!("{id:04}");
        stage.enqueue_for_later(&id).await;
        inspector.archive("default", &id).await.unwrap();
        // Each died at a time of its own, an hour after the one before.
        let died = stage.now().await - 1000 * 3600 * (5000 - id.parse::<u64>().unwrap());
        stage.place("archived", &id, died).await;
    }
}

fn ids(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|id| format!("{id:04}")).collect()
}

#[tokio::test]
async fn the_newest_up_to_the_cap_are_kept_exactly() {
    let stage = Stage::new("count").await;
    archive(&stage, 0..25).await;
    let server = sweeper(&stage, 20, HOUR * 10_000, puppet().0).await;
    stage.wait_for_total("swept_archived", 5).await;
    assert_eq!(stage.ids("archived").await, ids(5..25));
    stage.audit().await;

    // And again, for what comes later.
    archive(&stage, 25..28).await;
    stage.wait_for_total("swept_archived", 8).await;
    assert_eq!(stage.ids("archived").await, ids(8..28));
    assert_eq!(server.stop().await.stats.swept, 8);
    stage.audit().await;
}

#[tokio::test]
async fn what_is_too_old_leaves_and_the_rest_stays() {
    let stage = Stage::new("age").await;
    archive(&stage, 4_980..5_000).await;
    // The last one died an hour ago, and the first one twenty hours.
    let age = HOUR * 10 + Duration::from_secs(1800);
    let server = sweeper(&stage, 1000, age, puppet().0).await;
    stage.wait_for_total("swept_archived", 10).await;
    assert_eq!(stage.ids("archived").await, ids(4_990..5_000));
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn an_archive_of_nothing_keeps_nothing() {
    for (tasks, age) in [(0, HOUR * 10_000), (1000, Duration::ZERO)] {
        let stage = Stage::new("nothing").await;
        archive(&stage, 0..7).await;
        let server = sweeper(&stage, tasks, age, puppet().0).await;
        stage.wait_for_total("swept_archived", 7).await;
        assert_eq!(stage.keys("t:").await, [""; 0]);
        server.stop().await;
        stage.audit().await;
    }
}

#[tokio::test]
async fn several_servers_that_sweep_at_once_keep_the_cap_too() {
    let stage = Stage::new("racing").await;
    archive(&stage, 0..105).await;
    let mut servers = Vec::new();
    for _ in 0..4 {
        servers.push(sweeper(&stage, 100, HOUR * 10_000, puppet().0).await);
    }
    stage.wait_for_total("swept_archived", 5).await;
    assert_eq!(stage.ids("archived").await, ids(5..105));
    for server in servers {
        server.stop().await;
    }
    assert_eq!(stage.count("archived").await, 100);
    stage.audit().await;
}

#[tokio::test]
async fn each_queue_has_an_archive_of_its_own() {
    let stage = Stage::new("queues").await;
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    for queue in ["default", "other"] {
        for id in ["1", "2", "3"] {
            let enqueue = client.enqueue(task("x")).id(id).queue(queue);
            enqueue.delay(HOUR).await.unwrap();
            inspector.archive(queue, id).await.unwrap();
        }
    }
    let settings = stage.server().queues([("default", 1), ("other", 1)]);
    let settings = settings.archive_limits(2, HOUR);
    let server = stage.serve_with(settings, puppet().0).await;
    stage.wait_for_total("swept_archived", 1).await;
    for queue in ["default", "other"] {
        eventually("two are left", LIMIT, async || {
            let archived = stage.key_of(queue, "archived");
            let left: usize = stage.redis().zcard(archived).await.unwrap();
            if left == 2 { Ok(()) } else { Err(left) }
        })
        .await;
    }
    server.stop().await;
}
