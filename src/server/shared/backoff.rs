use std::time::{Duration, Instant};

use backon::ExponentialBackoff;

use crate::broker::{BrokerError, Queue, pauses};
use crate::defaults::RECONNECT_CAP;
use crate::server::observe::event::Event;
use crate::server::observe::log_limit::log_limited;
use crate::server::shared::Shared;
use crate::user_code::{chain, error_text};

/// How a component waits while Redis fails it: longer each time, up to a cap, with jitter; it says so,
/// and that it works again, at most once a second.
pub(crate) struct Backoff {
    component: &'static str,
    /// Where only one queue fails.
    queue: Option<Queue>,
    backoff: ExponentialBackoff,
    failing_since: Option<Instant>,
}

impl Backoff {
    pub(crate) fn new(component: &'static str) -> Self {
        Self {
            component,
            queue: None,
            backoff: pauses(),
            failing_since: None,
        }
    }

    /// For what a component does for one queue.
    pub(crate) fn of_queue(component: &'static str, queue: &Queue) -> Self {
        Self {
            queue: Some(queue.clone()),
            ..Self::new(component)
        }
    }

    fn queue(&self) -> Option<&str> {
        self.queue.as_ref().map(|queue| &*queue.name)
    }

    /// Notes a failure, and returns how long to wait before the next try.
    pub(crate) fn failed(&mut self, shared: &Shared, error: &BrokerError) -> Duration {
        if self.failing_since.is_none() {
            self.failing_since = Some(Instant::now());
            let component = self.component;
            shared.observe(|| Event::connection_lost(component, error_text(chain(error))));
        }
        log_limited!(
            shared,
            "",
            warn,
            "Redis fails; trying again",
            component = self.component,
            queue.name = self.queue(),
            error = error as &dyn std::error::Error,
        );
        let delay = self.backoff.next().unwrap_or(RECONNECT_CAP);
        delay.mul_f64(rand::random_range(0.5..1.0))
    }

    /// Notes a success.
    pub(crate) fn worked(&mut self, shared: &Shared) {
        if let Some(since) = self.failing_since.take() {
            self.backoff = pauses();
            let after = since.elapsed();
            // All components come back at about the same time.
            log_limited!(
                shared,
                "",
                info,
                "Redis works again",
                component = self.component,
                queue.name = self.queue(),
                ?after,
            );
            shared.observe(|| Event::connection_restored(self.component, after));
        }
    }

    /// Notes a failure and waits.
    pub(crate) async fn wait(&mut self, shared: &Shared, error: &BrokerError) {
        tokio::time::sleep(self.failed(shared, error)).await;
    }
}
