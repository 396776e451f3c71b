//! What a stage can do besides for the tests of this binary and those of failures of Redis.

// Each binary that includes this uses only a part of it.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::time::Duration;

use windlass::{Router, Server, ServerBuilder};

pub use crate::support::{LIMIT, Running, Stage};
use crate::support::{STATES, eventually};

impl Stage {
    /// Settings with which a test need not wait long.
    pub fn server(&self) -> ServerBuilder {
        Server::builder()
            .redis(self.url())
            .prefix(&self.prefix)
            .heartbeat(Duration::from_millis(200))
            .shutdown_grace(Duration::from_secs(5))
            .cancel_grace(Duration::from_secs(1))
    }

    /// Builds and starts a server with these settings.
    pub async fn serve(&self, settings: ServerBuilder, router: Router) -> Running {
        Running::start(settings.build(router).await.expect("the server is built"))
    }

    /// How many tasks of the queue `default` stand in each state, at one moment.
    pub async fn counts(&self) -> [usize; 6] {
        self.counts_of("default").await.unwrap()
    }

    async fn counts_of(&self, queue: &str) -> Result<[usize; 6], redis::RedisError> {
        self.ask_states(queue, "ZCARD", None).await
    }

    /// Waits until no task of the queue is left but archived and completed ones.
    pub async fn wait_until_drained(&self, queue: &str, limit: Duration) {
        eventually(&format!("{queue} is drained"), limit, async || {
            let counts = self
                .counts_of(queue)
                .await
                .map_err(|error| error.to_string())?;
            let drained = counts[..4] == [0; 4];
            if drained {
                Ok(())
            } else {
                Err(format!("{counts:?}"))
            }
        })
        .await;
    }

    /// Checks for the queue `default`, at one moment, that records and state sets, and leases and
    /// active tasks, name the same ids, each once.
    pub async fn audit(&self) {
        const SCRIPT: &str = "#!lua flags=no-writes\n\
            local listed = {}\n\
            for i, key in ipairs(KEYS) do listed[i] = redis.call('ZRANGE', key, 0, -1) end\n\
            return { redis.call('KEYS', ARGV[1]), redis.call('HKEYS', ARGV[2]), listed }";
        let prefix = self.key("t:");
        let pattern = prefix.replace('{', "[{]").replace('}', "[}]") + "*";
        let sets = STATES.map(|state| self.key(state)).to_vec();
        let mut look = redis::cmd("EVAL");
        look.arg(SCRIPT).arg(STATES.len()).arg(sets);
        look.arg(pattern).arg(self.key("leases"));
        let (records, mut leased, states): (Vec<String>, Vec<String>, Vec<Vec<String>>) =
            look.query_async(&mut self.redis()).await.unwrap();

        let records: BTreeSet<&str> = records.iter().map(|key| &key[prefix.len()..]).collect();
        let mut listed = states.concat();
        listed.sort_unstable();
        assert!(listed.iter().eq(&records), "{listed:?} {records:?}");
        let mut active = states[1].clone();
        active.sort_unstable();
        leased.sort_unstable();
        assert_eq!(active, leased, "active tasks and leases");
    }
}
