//! Servers that run in the test's own process.

use std::time::Duration;

use tokio::task::JoinHandle;
use windlass::{Report, Router, Server, ServerBuilder, ServerHandle};

use super::super::{eventually, within};
use super::{LIMIT, STATES, Stage, ms};

impl Stage {
    /// Settings with which a test need not wait long.
    pub fn server(&self) -> ServerBuilder {
        Server::builder()
            .redis(self.url())
            .prefix(&self.prefix)
            .heartbeat(ms(200))
            .scan_interval(ms(100))
            .clock_skew(Duration::ZERO)
            .sweep_interval(ms(50))
            .shutdown_grace(Duration::from_secs(5))
            .cancel_grace(Duration::from_secs(1))
    }

    /// Builds and starts a server with these settings.
    pub async fn serve_with(&self, settings: ServerBuilder, router: Router) -> Running {
        Running::start(settings.build(router).await.expect("the server is built"))
    }

    pub async fn serve(&self, router: Router) -> Running {
        self.serve_with(self.server(), router).await
    }

    /// How many tasks of the queue `default` stand in each state, at one moment.
    pub async fn counts(&self) -> [usize; STATES.len()] {
        self.counts_of("default").await.unwrap()
    }

    async fn counts_of(&self, queue: &str) -> Result<[usize; STATES.len()], redis::RedisError> {
        self.ask_states(queue, "ZCARD", None).await
    }

    /// Waits until no task of the queue is left but archived and completed ones.
    pub async fn wait_until_drained(&self, queue: &str, limit: Duration) {
        eventually(&format!("{queue} is drained"), limit, async || {
            let counts = self.counts_of(queue).await;
            let counts = counts.map_err(|error| error.to_string())?;
            let drained = counts[..4] == [0; 4];
            if drained {
                Ok(())
            } else {
                Err(format!("{counts:?}"))
            }
        })
        .await;
    }
}

/// A server that runs until it is stopped, or until the test ends.
pub struct Running {
    pub handle: ServerHandle,
    run: JoinHandle<Report>,
}

impl Running {
    pub fn start(server: Server) -> Self {
        let handle = server.handle();
        let run = tokio::spawn(async move {
            let report = server.run_until(std::future::pending()).await;
            report.expect("the server starts")
        });
        Self { handle, run }
    }

    pub async fn stop(self) -> Report {
        self.handle.stop();
        let report = within("the server stops", LIMIT, self.run).await;
        report.expect("the server does not panic")
    }
}
