//! What the tests of this folder share.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::{Cancellation, Delivery, Router};
use crate::task::{NewTask, Task};

#[derive(Serialize, Deserialize, Debug, PartialEq)]
pub(super) struct Number(pub u32);

impl Task for Number {
    const KIND: &'static str = "number";
}

pub(super) fn delivery(kind: &str) -> Delivery {
    Delivery {
        id: "id".into(),
        kind: kind.into(),
        queue: "default".into(),
        retried: 0,
        max_retry: 25,
        lease: 1,
        server_id: "server".into(),
        deadline: None,
        cancellation: Cancellation::new(),
        headers: Vec::new(),
        slot: None,
    }
}

/// What a task fails with.
pub(super) async fn failure_of(router: &Router, task: impl Into<NewTask>) -> String {
    let outcome = router.perform(task).await;
    outcome.failure().expect("it failed").text()
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(super) fn add(&self, entry: impl Into<String>) {
        self.0
            .lock()
            .expect("nobody panicked with it")
            .push(entry.into());
    }

    pub(super) fn entries(&self) -> Vec<String> {
        self.0.lock().expect("nobody panicked with it").clone()
    }
}
