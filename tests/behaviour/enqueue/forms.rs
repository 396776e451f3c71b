//! Each form of enqueue puts the task where it belongs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use windlass::client::EnqueueOutcome;
use windlass::task::RawTask;
use windlass::{NewTask, Task};

use crate::support::Stage;

fn task() -> RawTask {
    RawTask::new("form", "x")
}

#[tokio::test]
async fn a_task_that_is_due_is_pending() {
    let stage = Stage::new("due").await;
    let client = stage.client().await;
    let past = SystemTime::now() - Duration::from_secs(3600);
    let forms = [
        ("now", client.enqueue(task())),
        ("zero", client.enqueue(task()).delay(Duration::ZERO)),
        ("past", client.enqueue(task()).run_at(past)),
        ("epoch", client.enqueue(task()).run_at(UNIX_EPOCH)),
        (
            "last",
            client.enqueue(task()).run_at(past).delay(Duration::ZERO),
        ),
    ];
    for (id, form) in forms {
        let enqueued = form.id(id).await.unwrap();
        assert_eq!((&*enqueued.id, enqueued.outcome), (id, EnqueueOutcome::New));
        assert_eq!(stage.state(id).await, "pending", "{id}");
    }
    stage.audit().await;
}

#[tokio::test]
async fn a_delayed_task_is_due_by_the_clock_of_redis() {
    let stage = Stage::new("delayed").await;
    let client = stage.client().await;
    for ms in [1_000, 1_001, 86_400_000] {
        let before = stage.now().await;
        let form = client.enqueue(task()).delay(Duration::from_millis(ms));
        let id = form.await.unwrap().id;
        let after = stage.now().await;
        let scores = stage.scores("scheduled").await;
        let (_, due) = scores.into_iter().find(|(i, _)| *i == id).unwrap();
        let due = due as u64;
        // Rounded up to the next ms, so that it is never early.
        assert!((before + ms..=after + ms + 1).contains(&due), "{ms}: {due}");
    }
    stage.audit().await;
}

#[tokio::test]
async fn a_task_for_a_time_is_due_at_that_time() {
    let stage = Stage::new("run-at").await;
    let client = stage.client().await;
    let ms = stage.now().await + 60_000;
    let time = UNIX_EPOCH + Duration::from_millis(ms);
    client.enqueue(task()).id("a").run_at(time).await.unwrap();
    assert_eq!(stage.scores("scheduled").await, [("a".into(), ms as f64)]);
}

#[tokio::test]
async fn ids_are_unique_within_a_queue() {
    let stage = Stage::new("queues").await;
    let client = stage.client().await;
    for queue in ["default", "mail", "ü"] {
        let form = client.enqueue(task()).queue(queue).id("same");
        assert!(form.await.unwrap().is_new(), "{queue}");
        assert_eq!(stage.count_of(queue, "pending").await, 1, "{queue}");
    }
}

#[tokio::test]
async fn generated_ids_sort_by_age() {
    let stage = Stage::new("ids").await;
    let client = stage.client().await;
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(client.enqueue(task()).await.unwrap().id);
    }
    assert!(
        ids.is_sorted() && ids.iter().all(|id| id.len() == 26),
        "{ids:?}"
    );
    assert_eq!(stage.ids("pending").await, ids);
}

#[tokio::test]
async fn what_is_set_at_the_enqueue_beats_the_defaults_of_the_type() {
    #[derive(Serialize, Deserialize)]
    struct Mail;
    impl Task for Mail {
        const KIND: &'static str = "mail";
        fn defaults(&self, task: NewTask) -> NewTask {
            task.queue("mail").max_retry(5).priority(3)
        }
    }
    let stage = Stage::new("defaults").await;
    let client = stage.client().await;
    client.enqueue(Mail).await.unwrap();
    assert_eq!(stage.count_of("mail", "pending").await, 1);
    let form = client.enqueue(Mail).queue("default").max_retry(6).id("a");
    form.await.unwrap();
    let record = stage.record("a").await;
    assert_eq!((&*record["max_retry"], &*record["priority"]), ("6", "3"));
}

#[tokio::test]
async fn the_future_of_an_enqueue_can_be_spawned() {
    let stage = Stage::new("spawned").await;
    let client = stage.client().await;
    let spawned = tokio::spawn(client.enqueue(task()).id("a").send());
    let joined = tokio::join!(client.enqueue(task()).id("b").send(), spawned);
    assert_eq!(joined.0.unwrap().require_new().unwrap(), "b");
    assert_eq!(joined.1.unwrap().unwrap().require_new().unwrap(), "a");
    assert_eq!(stage.count("pending").await, 2);
}

#[tokio::test]
async fn a_lazy_client_connects_at_its_first_enqueue() {
    let stage = Stage::new("lazy").await;
    let client = stage.client_builder().lazy().unwrap();
    assert!(client.clone().enqueue(task()).await.unwrap().is_new());
    let many = client.enqueue_many([task()]).await;
    assert!(many[0].as_ref().unwrap().is_new());
}
