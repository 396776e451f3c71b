//! A stage for one test: keys of its own, clients and servers on them, and looks into Redis.

// Each binary that includes this uses only a part of it.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, FromRedisValue};
use tokio::task::JoinHandle;
use windlass::{Client, ClientBuilder, Report, Router, Server, ServerBuilder, ServerHandle};

use crate::support::{RedisServer, eventually, unique_prefix, within};

/// How long anything may take that is not measured.
pub const LIMIT: Duration = Duration::from_secs(20);

/// The state sets, one of which every record stands in.
pub const STATES: [&str; 5] = ["pending", "active", "scheduled", "retry", "archived"];

pub struct Stage {
    url: String,
    pub prefix: String,
    redis: MultiplexedConnection,
}

impl Stage {
    /// On the Redis that the tests share.
    pub async fn new(name: &str) -> Self {
        Self::on(RedisServer::shared(), name).await
    }

    /// On a Redis of the test's own.
    pub async fn on(redis: &RedisServer, name: &str) -> Self {
        Self {
            url: redis.url(),
            prefix: unique_prefix(name),
            redis: redis.connection().await,
        }
    }

    /// Clients and servers reach Redis there; the test's own looks stay direct.
    pub fn behind(mut self, url: String) -> Self {
        self.url = url;
        self
    }

    /// The same keys, looked at through a new connection: Redis was restarted.
    pub async fn reconnect(self, redis: &RedisServer) -> Self {
        Self {
            redis: redis.connection().await,
            ..self
        }
    }

    pub fn redis(&self) -> MultiplexedConnection {
        self.redis.clone()
    }

    pub fn client_builder(&self) -> ClientBuilder {
        Client::builder(&self.url).prefix(&self.prefix)
    }

    pub async fn client(&self) -> Client {
        let client = self.client_builder().connect().await;
        client.expect("the test's Redis is there")
    }

    /// Settings with which a test need not wait long.
    pub fn server(&self) -> ServerBuilder {
        Server::builder()
            .redis(&self.url)
            .prefix(&self.prefix)
            .heartbeat(Duration::from_millis(200))
            .shutdown_grace(Duration::from_secs(5))
            .cancel_grace(Duration::from_secs(1))
    }

    /// Builds and starts a server with these settings.
    pub async fn serve(&self, settings: ServerBuilder, router: Router) -> Running {
        Running::start(settings.build(router).await.expect("the server is built"))
    }

    pub fn key_of(&self, queue: &str, name: &str) -> String {
        format!("{}:{{{queue}}}:{name}", self.prefix)
    }

    /// A key of the queue `default`.
    pub fn key(&self, name: &str) -> String {
        self.key_of("default", name)
    }

    /// What `HGETALL` answers for a task of the queue `default`, as text.
    pub async fn record(&self, id: &str) -> BTreeMap<String, String> {
        let record = self.redis().hgetall(self.key(&format!("t:{id}"))).await;
        let record: BTreeMap<String, Vec<u8>> = record.expect("a record is a hash");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        record.into_iter().map(|(k, v)| (k, text(v))).collect()
    }

    /// The members of a state set of the queue `default` and their scores, lowest first.
    pub async fn scores(&self, state: &str) -> Vec<(String, f64)> {
        let members = self.redis().zrange_withscores(self.key(state), 0, -1).await;
        members.expect("a state is a sorted set")
    }

    /// The ids in a state set of the queue `default`, lowest score first.
    pub async fn ids(&self, state: &str) -> Vec<String> {
        let scores = self.scores(state).await;
        scores.into_iter().map(|(id, _)| id).collect()
    }

    pub async fn count_of(&self, queue: &str, state: &str) -> usize {
        let count = self.redis().zcard(self.key_of(queue, state)).await;
        count.expect("a state is a sorted set")
    }

    /// How many tasks of the queue `default` stand in each state, at one moment.
    pub async fn counts(&self) -> [usize; 5] {
        self.counts_of("default").await.unwrap()
    }

    async fn counts_of(&self, queue: &str) -> Result<[usize; 5], redis::RedisError> {
        self.look(queue, "ZCARD", None).await
    }

    /// What a command answers for each state set. At one moment, because tasks are on their way from
    /// one to another; by a script, because a full Redis refuses transactions.
    async fn look<T: FromRedisValue>(
        &self,
        queue: &str,
        command: &str,
        member: Option<&str>,
    ) -> Result<T, redis::RedisError> {
        const SCRIPT: &str = "#!lua flags=no-writes\n\
            local answers = {}\n\
            for i, key in ipairs(KEYS) do answers[i] = redis.call(ARGV[1], key, unpack(ARGV, 2)) end\n\
            return answers";
        let mut look = redis::cmd("EVAL");
        look.arg(SCRIPT).arg(STATES.len());
        look.arg(STATES.map(|state| self.key_of(queue, state)).to_vec());
        look.arg(command).arg(member);
        look.query_async(&mut self.redis()).await
    }

    pub async fn count(&self, state: &str) -> usize {
        self.count_of("default", state).await
    }

    /// The state of a task of the queue `default`; `gone` when it is in none.
    pub async fn state(&self, id: &str) -> &'static str {
        let scores: Vec<Option<f64>> = self.look("default", "ZSCORE", Some(id)).await.unwrap();
        let found = scores.iter().position(Option::is_some);
        found.map_or("gone", |place| STATES[place])
    }

    /// Waits until a task of the queue `default` is in `state`; answers its record.
    pub async fn wait_for_state(&self, id: &str, state: &str) -> BTreeMap<String, String> {
        eventually(&format!("{id} is {state}"), LIMIT, async || {
            let now = self.state(id).await;
            if now == state { Ok(()) } else { Err(now) }
        })
        .await;
        self.record(id).await
    }

    /// Waits until no task of the queue is left but archived ones.
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

    /// The totals that the scripts keep of the queue `default`.
    pub async fn totals(&self) -> HashMap<String, u64> {
        self.redis().hgetall(self.key("stats")).await.unwrap()
    }

    pub async fn total(&self, name: &str) -> u64 {
        self.totals().await.get(name).copied().unwrap_or(0)
    }

    /// Redis' clock in ms since the epoch.
    pub async fn now(&self) -> u64 {
        let (seconds, micros): (u64, u64) = redis::cmd("TIME")
            .query_async(&mut self.redis())
            .await
            .unwrap();
        seconds * 1000 + micros / 1000
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
        let sets = STATES.iter().chain(&["completed"]);
        let sets: Vec<_> = sets.map(|state| self.key(state)).collect();
        let mut look = redis::cmd("EVAL");
        look.arg(SCRIPT).arg(sets.len()).arg(sets);
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
