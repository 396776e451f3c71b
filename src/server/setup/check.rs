use std::time::Duration;

use tokio::sync::Semaphore;

use crate::defaults::FAR;
use crate::server::setup::builder::ServerBuilder;
use crate::server::setup::error::BuildError;
use crate::task::check_queue;

impl ServerBuilder {
    /// Checks what can be checked without Redis, and settles the heartbeat.
    pub(super) fn check(&mut self) -> Result<(), BuildError> {
        if self.queues.is_empty() && !self.all_queues {
            return Err(BuildError::NoQueue);
        }
        for (place, (name, weight)) in self.queues.iter().enumerate() {
            check_queue(name)?;
            if *weight == 0 {
                return Err(BuildError::ZeroWeight(name.clone()));
            }
            if self.queues[..place]
                .iter()
                .any(|(earlier, _)| earlier == name)
            {
                return Err(BuildError::QueueTwice(name.clone()));
            }
        }
        let config = &mut self.config;
        match config.concurrency {
            0 => return Err(BuildError::ZeroConcurrency),
            n if n > Semaphore::MAX_PERMITS => return Err(BuildError::Concurrency(n)),
            _ => {}
        }
        if !(0.0..=1.0).contains(&config.kept_memory) {
            return Err(BuildError::KeptMemory(config.kept_memory));
        }
        if config.lease < Duration::from_secs(1) {
            return Err(BuildError::ShortLease(config.lease));
        }
        config.heartbeat = self.heartbeat.unwrap_or(config.lease / 3);
        if config.heartbeat > config.lease / 3 {
            return Err(BuildError::SlowHeartbeat {
                heartbeat: config.heartbeat,
                lease: config.lease,
            });
        }
        let durations = [
            ("heartbeat", config.heartbeat),
            ("scan_interval", config.scan),
            ("sweep_interval", config.sweep_interval),
        ];
        let zero = durations
            .iter()
            .find(|(_, d)| *d < Duration::from_millis(1));
        if let Some((name, _)) = zero {
            return Err(BuildError::ZeroDuration(name));
        }
        let maybe_zero = [
            ("lease", config.lease),
            ("clock_skew", config.clock_skew),
            ("lost_lease_delay", config.lost_lease_delay),
            ("archive_limits", config.archive_age),
            ("keep_for_hooks", config.keep_for_hooks),
            ("shutdown_grace", config.shutdown_grace),
            ("cancel_grace", config.cancel_grace),
        ];
        let mut all = maybe_zero.iter().chain(&durations);
        if let Some((name, _)) = all.find(|(_, d)| *d > FAR) {
            return Err(BuildError::LongDuration(name));
        }
        let most = config.harmless_outage();
        if config.scan > most {
            return Err(BuildError::SlowScan {
                scan: config.scan,
                lease: config.lease,
                most,
            });
        }
        Ok(())
    }
}
