//! Options that a task's own fields decide.

use serde::{Deserialize, Serialize};
use windlass::client::EnqueueOutcome;
use windlass::{NewTask, Task, Unique};

use crate::support::Stage;

#[derive(Serialize, Deserialize)]
struct Rebuild {
    shop: String,
    priority: u8,
    reason: String,
}

impl Task for Rebuild {
    const KIND: &'static str = "rebuild";

    fn defaults(&self, task: NewTask) -> NewTask {
        task.priority(self.priority)
            .unique(Unique::until_done().key(&self.shop))
    }
}

fn rebuild(shop: &str, priority: u8, reason: &str) -> Rebuild {
    let (shop, reason) = (shop.to_owned(), reason.to_owned());
    Rebuild {
        shop,
        priority,
        reason,
    }
}

#[tokio::test]
async fn a_task_s_fields_decide_its_options_and_an_enqueue_can_set_others() {
    let stage = Stage::new("fields").await;
    let client = stage.client().await;
    let first = client.enqueue(rebuild("a", 2, "price")).await.unwrap();
    assert_eq!(stage.record(&first.id).await["priority"], "2");
    let again = client.enqueue(rebuild("a", 2, "stock")).await.unwrap();
    assert_eq!(again.outcome, EnqueueOutcome::Duplicate);
    let other = client.enqueue(rebuild("b", 2, "price")).priority(7).await;
    let other = other.unwrap();
    assert!(other.is_new());
    assert_eq!(stage.record(&other.id).await["priority"], "7");
}
