//! Keys under the prefix that are not windlass', or of another version of it.

use redis::AsyncCommands;
use windlass::Router;
use windlass::client::EnqueueError;
use windlass::error::{BrokerError, SetupProblem};
use windlass::server::BuildError;
use windlass::task::RawTask;

use super::whole;
use crate::fixture::Stage;

async fn raw(_: RawTask) -> Result<(), String> {
    Ok(())
}

async fn build_error(stage: &Stage) -> SetupProblem {
    let router = Router::new().raw("kind", raw);
    match stage.server().build(router).await {
        Err(BuildError::Redis(finding)) => finding,
        other => panic!("{other:?}"),
    }
}

const STATES: [&str; 9] = [
    "pending",
    "active",
    "scheduled",
    "retry",
    "archived",
    "leases",
    "meta",
    "stats",
    "wake",
];

#[tokio::test]
async fn a_key_of_a_wrong_type_is_named() {
    for name in STATES {
        let stage = Stage::new("wrong-type").await;
        let key = stage.key(name);
        let _: () = stage.redis().set(&key, "x").await.unwrap();
        let finding = build_error(&stage).await;
        let text = finding.to_string();
        assert!(
            text.contains("something else writes under this prefix"),
            "{text}"
        );
        let SetupProblem::WrongType {
            key: named, found, ..
        } = finding
        else {
            panic!("{name}: {finding:?}");
        };
        assert_eq!((named, &*found), (key, "string"));
    }
}

#[tokio::test]
async fn an_enqueue_to_a_queue_with_a_key_of_a_wrong_type_leaves_nothing() {
    for (name, delay) in [("pending", 0), ("scheduled", 60), ("meta", 0)] {
        let stage = Stage::new("half-done").await;
        let client = stage.client().await;
        let _: () = stage.redis().set(stage.key(name), "x").await.unwrap();
        let delay = std::time::Duration::from_secs(delay);
        let enqueue = client
            .enqueue(RawTask::new("kind", "x"))
            .id("a")
            .delay(delay);
        let error = enqueue.await.expect_err(name);
        let EnqueueError::Refused(source) = &error else {
            panic!("{name}: {error:?}");
        };
        assert!(
            matches!(*source, BrokerError::WrongType(_)),
            "{name}: {error:?}"
        );
        assert!(whole(&error).contains("something else writes under this prefix"));
        assert!(
            stage.record("a").await.is_empty(),
            "{name}: a record was left"
        );
    }
}

#[tokio::test]
async fn a_queue_of_another_schema_is_refused() {
    let stage = Stage::new("schema").await;
    let client = stage.client().await;
    let _: () = stage
        .redis()
        .hset(stage.key("meta"), "schema", 2)
        .await
        .unwrap();

    let finding = build_error(&stage).await;
    let text = finding.to_string();
    assert!(
        text.contains("has schema 2") && text.contains("matching windlass version"),
        "{text}"
    );
    assert!(matches!(finding, SetupProblem::Schema { found, .. } if found == "2"));

    let error = client
        .enqueue(RawTask::new("kind", "x"))
        .id("a")
        .await
        .unwrap_err();
    let EnqueueError::Refused(source) = &error else {
        panic!("{error:?}");
    };
    assert!(matches!(*source, BrokerError::Schema(_)), "{error:?}");
    let text = whole(&error);
    assert!(
        text.contains("has schema 2") && text.contains("matching windlass version"),
        "{text}"
    );
    assert!(!text.contains("user_script"), "{text}");
    assert!(stage.record("a").await.is_empty());
}
