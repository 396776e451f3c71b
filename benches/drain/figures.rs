use std::fmt;
use std::time::Instant;

use redis::aio::MultiplexedConnection;

use crate::common::{Failure, info, median, percentile};

/// What several runs of one way to drain gave.
#[derive(Default)]
pub struct Figures {
    /// Tasks a second.
    pub rates: Vec<f64>,
    /// Script calls for each task.
    calls: Vec<f64>,
}

impl Figures {
    pub async fn measure(
        &mut self,
        redis: &mut MultiplexedConnection,
        tasks: usize,
        run: impl Future<Output = Result<(), Failure>>,
    ) -> Result<(), Failure> {
        let calls = script_calls(redis).await?;
        let start = Instant::now();
        run.await?;
        let took = start.elapsed();
        let calls = script_calls(redis).await? - calls;
        let left: usize = redis::cmd("DBSIZE").query_async(redis).await?;
        // What stays is of the queue and of the day, not of tasks.
        if left > 10 {
            return Err(format!("{left} keys are left: not every task was settled").into());
        }
        self.rates.push(tasks as f64 / took.as_secs_f64());
        self.calls.push(calls / tasks as f64);
        Ok(())
    }
}

async fn script_calls(redis: &mut MultiplexedConnection) -> Result<f64, Failure> {
    let stats = info(redis, "cmdstat_evalsha").await?;
    let calls = stats.split([',', '=']).nth(1);
    Ok(calls.and_then(|n| n.parse().ok()).unwrap_or_default())
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |share| percentile(&self.rates, share);
        let rates = format!("{:.0} ({:.0} to {:.0})", at(0.5), at(0.0), at(1.0));
        write!(f, "{rates:24}   {:10.4}", median(&self.calls))
    }
}
