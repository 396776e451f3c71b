//! What the tests of the router's rooms share.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::router::handlers::{Cancellation, Delivery};
use crate::router::outcomes::{Failure, Outcome};
use crate::router::routing::{Router, RouterError, Routes};
use crate::task::{NewTask, Task, encode};

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
        keeps_result: true,
        slot: None,
    }
}

// Each of these ends a test that goes another way than it means to; a panic is how a test fails.

pub(super) fn routes(router: Router) -> Routes {
    router.build().expect("the router is sound")
}

pub(super) fn refused(router: Router) -> RouterError {
    router.build().expect_err("the router is refused")
}

pub(super) fn encoded(value: &impl Serialize) -> Vec<u8> {
    encode(value).expect("it can be encoded")
}

pub(super) fn failure(outcome: &Outcome) -> &Failure {
    outcome.failure().expect("the attempt failed")
}

pub(super) fn result<T: DeserializeOwned>(outcome: &Outcome) -> Option<T> {
    outcome.result().expect("the result has this type")
}

/// What a task fails with.
pub(super) async fn failure_of(router: &Router, task: impl Into<NewTask>) -> String {
    failure(&router.perform(task).await).text()
}

/// Something that happens once, on any thread.
#[derive(Clone, Default)]
pub(super) struct Flag(Arc<(Mutex<bool>, Condvar)>);

impl Flag {
    fn happened(&self) -> MutexGuard<'_, bool> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self) {
        *self.happened() = true;
        self.0.1.notify_all();
    }

    pub(super) fn is_set(&self) -> bool {
        *self.happened()
    }

    /// Blocks the thread until it has happened.
    pub(super) fn wait(&self) {
        const LIMIT: Duration = Duration::from_secs(30);
        let waited = (self.0.1).wait_timeout_while(self.happened(), LIMIT, |set| !*set);
        let (happened, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(*happened, "waited {LIMIT:?} in vain");
    }
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, entry: impl Into<String>) {
        self.lock().push(entry.into());
    }

    pub(super) fn entries(&self) -> Vec<String> {
        self.lock().clone()
    }
}
