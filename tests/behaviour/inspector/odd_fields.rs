//! A record whose fields somebody wrote by hand: what is done to its task is done whole, or not at all.

use redis::AsyncCommands;
use windlass::inspector::{CancelMode, ChangeOutcome};

use crate::support::Stage;

/// The fields that decide where a task goes.
const FIELDS: [&str; 14] = [
    "retried",
    "max_retry",
    "priority",
    "started_at",
    "lost",
    "deadline",
    "start_before",
    "retention",
    "unique",
    "lock_time",
    "replace_until",
    "cancel",
    "undecodable",
    "reason",
];

const VALUES: [&str; 12] = [
    "",
    ":",
    "x",
    "no mode",
    "done:",
    ":lock",
    "done:lock",
    "-1",
    "1e308",
    "-1e308",
    "inf",
    "nan",
];

#[tokio::test]
async fn each_deed_is_done_whole_whatever_is_in_a_field() {
    let stage = Stage::new("odd").await;
    let inspector = stage.inspector().await;
    let mut redis = stage.redis();
    stage.pause().await;
    for (field, value) in FIELDS.into_iter().flat_map(|f| VALUES.map(|v| (f, v))) {
        for is_archived in [false, true] {
            stage.enqueue_for_later("it").await;
            if is_archived {
                inspector.archive("default", "it").await.unwrap();
            }
            let record = stage.record_key("it");
            let _: () = redis.hset(&record, field, value).await.unwrap();
            let what = format!("{field} is {value:?}, archived: {is_archived}");
            let ran = inspector.run("default", "it").await;
            assert_eq!(ran.expect(&what), ChangeOutcome::Done, "{what}");
            assert_eq!(stage.state("it").await, "pending", "{what}");
            assert!(stage.look("it").await.is_some(), "{what}");
            let mode = CancelMode::Archive;
            let cancelled = inspector.cancel("default", "it", mode).await;
            assert_eq!(cancelled.expect(&what), ChangeOutcome::Done, "{what}");
            assert_eq!(stage.state("it").await, "archived", "{what}");
            let deleted = inspector.delete("default", "it").await;
            assert_eq!(deleted.expect(&what), ChangeOutcome::Done, "{what}");
            assert_eq!(stage.keys("t:").await, [""; 0], "{what}");
            assert_eq!(stage.count("deadlines").await, 0, "{what}");
            assert_eq!(stage.keys("unique:").await, [""; 0], "{what}");
        }
    }
}
