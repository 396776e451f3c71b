//! What a stage can do besides for the tests of this binary.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::AsyncCommands;
use windlass::{Inspector, NewTask, RawTask, Router, Server, ServerBuilder, TaskInfo};

use crate::support::eventually;
pub use crate::support::{LIMIT, Running, STATES, Stage};

/// Far enough away for a test never to see it.
pub const HOUR: Duration = Duration::from_secs(3600);

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A task of the kind `kind`.
pub fn task(payload: impl Into<Vec<u8>>) -> NewTask {
    RawTask::new("kind", payload).into()
}

impl Stage {
    /// What a child process needs to stand on the same stage.
    pub fn environment(&self) -> [(&'static str, &str); 2] {
        [("REDIS", self.url()), ("PREFIX", &self.prefix)]
    }

    /// In a child process.
    pub async fn from_environment() -> Self {
        let get = |name| std::env::var(name).expect("the parent has set it");
        let url = get("REDIS");
        let client = redis::Client::open(&*url).expect("the URL is valid");
        let redis = client.get_multiplexed_async_connection().await;
        let redis = redis.expect("the parent's Redis is there");
        Self::at(url, get("PREFIX"), redis)
    }

    pub async fn inspector(&self) -> Inspector {
        let inspector = Inspector::connect_with_prefix(self.url(), &self.prefix).await;
        inspector.expect("the test's Redis is there")
    }

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

    /// The queue's keys whose name begins so, sorted.
    pub async fn keys(&self, name: &str) -> Vec<String> {
        let escape = |text: &str| text.replace('{', "[{]").replace('}', "[}]");
        let pattern = escape(&self.key(name)) + "*";
        let mut keys: Vec<String> = self.redis().keys(pattern).await.expect("KEYS is allowed");
        keys.sort_unstable();
        keys
    }

    pub async fn score(&self, set: &str, id: &str) -> Option<u64> {
        let score: Option<f64> = self.redis().zscore(self.key(set), id).await.unwrap();
        score.map(|score| score as u64)
    }

    /// Waits until a sorted set of the queue `default` has so many members.
    pub async fn wait_for_count(&self, set: &str, count: usize) {
        eventually(&format!("{set} has {count}"), LIMIT, async || {
            let now = self.count(set).await;
            if now == count { Ok(()) } else { Err(now) }
        })
        .await;
    }

    /// Why a task was archived, once it is.
    pub async fn wait_for_reason(&self, id: &str) -> String {
        let record = self.wait_for_state(id, "archived").await;
        record.get("reason").cloned().unwrap_or_default()
    }

    pub async fn look(&self, id: &str) -> Option<TaskInfo> {
        let task = self.inspector().await.task("default", id).await;
        task.expect("Redis answers")
    }

    /// A time by Redis' clock.
    pub async fn in_future(&self, after: Duration) -> SystemTime {
        UNIX_EPOCH + ms(self.now().await) + after
    }

    /// Waits until Redis' clock has passed a time in ms.
    pub async fn wait_until(&self, time: u64) {
        let left = time.saturating_sub(self.now().await);
        eventually("the time comes", ms(left) + LIMIT, async || {
            (self.now().await > time).then_some(())
        })
        .await;
    }

    /// Nothing of the queue `default` is claimed until it goes on.
    pub async fn pause(&self) {
        let _: () = self
            .redis()
            .hset(self.key("meta"), "paused", 1)
            .await
            .unwrap();
    }

    pub async fn resume(&self) {
        let _: () = self.redis().hdel(self.key("meta"), "paused").await.unwrap();
    }

    /// Writes a field of a task's record by hand.
    pub async fn set(&self, id: &str, field: &str, value: u64) {
        let _: () = self
            .redis()
            .hset(self.record_key(id), field, value)
            .await
            .unwrap();
    }

    /// Gives a task a score in a sorted set by hand.
    pub async fn place(&self, set: &str, id: &str, score: u64) {
        let _: () = self.redis().zadd(self.key(set), id, score).await.unwrap();
    }

    /// Gives a task's lease to another server, which is alive, by hand.
    pub async fn give_away(&self, id: &str) {
        let lease = "99999999999999999@another 1 1";
        let leases = self.key("leases");
        let _: () = self.redis().hset(leases, id, lease).await.unwrap();
    }

    /// Enqueues a task that nobody claims for now.
    pub async fn enqueue_for_later(&self, id: impl Into<String>) {
        let enqueue = self.client().await.enqueue(task("x")).id(id).delay(HOUR);
        assert!(enqueue.await.unwrap().is_new());
    }

    /// Removes a key of the queue `default` by hand.
    pub async fn remove(&self, name: &str) {
        let _: () = self.redis().del(self.key(name)).await.unwrap();
    }

    /// Makes a waiting task one that a server died with: leased, and past its expiry.
    pub async fn lose(&self, id: &str) {
        let state = self.state(id).await;
        let mut pipeline = redis::pipe();
        pipeline
            .atomic()
            .zrem(self.key(state), id)
            .zrem(self.key("deadlines"), id)
            .hset(
                self.key("leases"),
                id,
                format!("1@{} 1 1", "dead".repeat(20)),
            )
            .zadd(self.key("active"), id, 0);
        let _: () = pipeline.query_async(&mut self.redis()).await.unwrap();
    }

    /// Checks for the queue `default` what must be true whenever no script runs.
    pub async fn audit(&self) {
        let mut stands = BTreeMap::new();
        for state in STATES {
            for id in self.ids(state).await {
                let before = stands.insert(id.clone(), state);
                assert_eq!(before, None, "{id} stands in {state}, too");
            }
        }
        let prefix = self.key("t:");
        let records = self.keys("t:").await;
        let records: BTreeSet<_> = records.iter().map(|key| &key[prefix.len()..]).collect();
        let listed: BTreeSet<_> = stands.keys().map(String::as_str).collect();
        assert_eq!(records, listed, "records and what stands in a state");

        let leased: BTreeSet<String> = self.redis().hkeys(self.key("leases")).await.unwrap();
        let active: BTreeSet<_> = self.ids("active").await.into_iter().collect();
        assert_eq!(leased, active, "leases and active tasks");

        for id in self.ids("hooks").await {
            assert_eq!(stands.get(&id), Some(&"archived"), "owes a hook: {id}");
        }
        let mut waiting_until = BTreeSet::new();
        for (id, state) in &stands {
            let record = self.record(id).await;
            let start_before =
                record.contains_key("start_before") && !record.contains_key("started_at");
            let waits = ["pending", "scheduled", "retry"].contains(state);
            if waits && (record.contains_key("deadline") || start_before) {
                waiting_until.insert(id.clone());
            }
        }
        let deadlines: BTreeSet<_> = self.ids("deadlines").await.into_iter().collect();
        assert_eq!(
            deadlines, waiting_until,
            "deadlines and waiting tasks with one"
        );

        for lock in self.keys("unique:").await {
            let holder: String = self.redis().get(&lock).await.unwrap();
            let (mode, id) = holder.split_once(' ').expect("mode and id");
            if mode != "time" {
                let state = stands.get(id).copied().unwrap_or("gone");
                let ended = ["archived", "completed", "gone"].contains(&state);
                assert!(!ended, "{id} is {state} and holds {lock}");
            }
        }
    }
}
