//! What handlers share, such as a database, and how a handler becomes safe to run twice.
//!
//! ```text
//! cargo run --example shared_state
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass::{Client, NewTask, Router, Server, State, Task, TaskContext};

const QUEUE: &str = "example-shared-state";

#[derive(Serialize, Deserialize)]
struct Pay {
    account: String,
    cents: u64,
}

impl Task for Pay {
    const KIND: &'static str = "account:pay";

    /// Options of every task of this type; what is set at an enqueue wins over them.
    fn defaults(&self, task: NewTask) -> NewTask {
        task.queue(QUEUE)
    }
}

/// Stands in for a database. Each run of a handler gets a clone, so what is dear to clone goes
/// into an `Arc`; a connection pool usually is one already.
#[derive(Clone, Default)]
struct Bank(Arc<Mutex<HashMap<String, Pay>>>);

/// A task runs at least once, and twice if its worker dies at the wrong moment. So this handler
/// writes under the task's id: a second run finds the first one's entry and changes nothing.
async fn pay(task: Pay, State(bank): State<Bank>, context: TaskContext) -> Result<(), String> {
    let mut payments = bank.0.lock().unwrap_or_else(PoisonError::into_inner);
    payments.entry(context.id().to_owned()).or_insert(task);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt::init();
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1/".to_owned());
    let client = Client::connect(&url).await?;

    // An id of your own makes the enqueue safe to repeat too, as long as the task exists.
    for attempt in 1..=2 {
        let task = Pay {
            account: "ada".into(),
            cents: 1250,
        };
        let enqueued = client.enqueue(task).id("order-17").await?;
        println!("enqueue {attempt} of order-17: {:?}", enqueued.outcome);
    }

    // A state that a handler asks for and the router lacks is an error here, by name, and not when
    // the first task runs.
    let bank = Bank::default();
    let router = Router::new().task(pay).state(bank.clone());
    let server = Server::builder()
        .redis(&url)
        .queues([(QUEUE, 1)])
        .build(router)
        .await?;
    let handle = server.handle();
    let paid = async move {
        while handle.stats().completed < 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    server.run_until(paid).await?;

    for (id, Pay { account, cents }) in &*bank.0.lock().unwrap_or_else(PoisonError::into_inner) {
        println!("{id}: {cents} cents to {account}");
    }
    Ok(())
}
