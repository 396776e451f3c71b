//! Servers that run in the test's own process.

use std::time::Duration;

use tokio::task::JoinHandle;
use windlass::server::{Report, ServerBuilder, ServerHandle};
use windlass::{Router, Server};

use super::super::{eventually, within};
use super::{LIMIT, STATES, Stage, ms};

impl Stage {
    /// Settings with which a test need not wait long.
    pub fn server(&self) -> ServerBuilder {
        Server::builder()
            .redis(self.config())
            .heartbeat(ms(200))
            .scan_interval(ms(100))
            .clock_skew(Duration::ZERO)
            .sweep_interval(ms(50))
            .shutdown_grace(Duration::from_secs(5))
            .cancel_grace(Duration::from_secs(1))
    }

    /// Settings with which a server that stops cancels its handlers at once, and waits 10 ms for them.
    pub fn hasty_server(&self) -> ServerBuilder {
        let settings = self.server().shutdown_grace(Duration::ZERO);
        settings.cancel_grace(ms(10))
    }

    /// Builds and starts a server with these settings.
    pub async fn serve_with(&self, settings: ServerBuilder, router: Router) -> Running {
        Running::start(settings.build(router).await.expect("the server is built"))
    }

    pub async fn serve(&self, router: Router) -> Running {
        self.serve_with(self.server(), router).await
    }

    /// Serves until this process is killed.
    pub async fn serve_for_ever(&self, settings: ServerBuilder, router: Router) -> ! {
        let server = self.serve_with(settings, router).await;
        println!("ready");
        panic!("it ended by itself: {:?}", server.run.await)
    }

    /// Waits until this many tries ended well and no task is left, also not in the archive.
    pub async fn wait_until_done(&self, succeeded: u64) {
        let title = format!("{succeeded} tasks are done and none is left");
        eventually(&title, LIMIT, async || {
            let census = self.audit().await;
            let done = census.in_all_states() == 0 && census.succeeded == succeeded;
            done.then_some(()).ok_or(census)
        })
        .await;
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

    /// Builds and starts one that claims nothing.
    pub async fn start_quiet(settings: ServerBuilder, router: Router) -> Self {
        let server = settings.build(router).await.expect("the server is built");
        server.handle().quiet();
        Self::start(server)
    }

    /// Stops it as SIGTERM does, and waits for its end.
    pub async fn stop(self) -> Report {
        self.handle.stop();
        self.end().await
    }

    /// Waits for its end.
    pub async fn end(self) -> Report {
        let report = within("the server ends", LIMIT, self.run).await;
        report.expect("the server does not panic")
    }

    /// Drops the future that runs it: its leases run out, as after a crash.
    pub async fn vanish(self) {
        self.run.abort();
        let ended = self.run.await;
        assert!(ended.is_err_and(|error| error.is_cancelled()));
    }
}
