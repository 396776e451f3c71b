//! Handlers can be tested without Redis: `Router::perform` packs a task, unpacks it, and runs
//! middleware and handler in memory. It needs the feature `testing`; put it where only tests see it:
//!
//! ```text
//! [dev-dependencies]
//! windlass = { version = "0.1", features = ["testing"] }
//! ```
//!
//! ```text
//! cargo test --features testing --example unit_test_a_handler   # the tests below
//! cargo run  --features testing --example unit_test_a_handler   # one task, and its outcome
//! ```

use serde::{Deserialize, Serialize};
use windlass::{Router, State, Task, TaskError};

#[derive(Serialize, Deserialize)]
struct Convert {
    cents: u64,
    currency: String,
}

impl Task for Convert {
    const KIND: &'static str = "money:convert";
}

#[derive(Clone)]
struct EuroRate(f64);

async fn convert(task: Convert, State(rate): State<EuroRate>) -> Result<u64, TaskError> {
    match task.currency.as_str() {
        "EUR" => Ok((task.cents as f64 * rate.0).round() as u64),
        other => Err(TaskError::skip_retry(format!("no rate for {other}"))),
    }
}

/// The router that the worker uses too, so that tests see the real wiring.
fn router(rate: EuroRate) -> Router {
    Router::new().task(convert).state(rate)
}

#[tokio::main]
async fn main() {
    let task = Convert {
        cents: 1000,
        currency: "EUR".into(),
    };
    println!("{:?}", router(EuroRate(1.1)).perform(task).await);
}

#[cfg(test)]
mod tests {
    use windlass::handler::Verdict;

    use super::*;

    fn task(currency: &str) -> Convert {
        Convert {
            cents: 1000,
            currency: currency.into(),
        }
    }

    #[tokio::test]
    async fn euros_are_converted() {
        let outcome = router(EuroRate(1.1)).perform(task("EUR")).await;
        assert_eq!(outcome.result::<u64>().unwrap(), Some(1100));
    }

    #[tokio::test]
    async fn an_unknown_currency_is_not_retried() {
        let outcome = router(EuroRate(1.1)).perform(task("XYZ")).await;
        let failure = outcome.failure().unwrap();
        assert_eq!(failure.verdict(), Verdict::SkipRetry);
        assert_eq!(failure.text(), "no rate for XYZ");
    }
}
