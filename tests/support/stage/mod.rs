//! A stage for one test: keys of its own, and looks into Redis.

mod audit;
mod by_hand;
mod server;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, FromRedisValue};
use tokio::sync::OnceCell;
use windlass::client::ClientBuilder;
use windlass::inspector::TaskInfo;
use windlass::task::RawTask;
use windlass::{Client, Inspector, NewTask, RedisConfig};

pub use self::audit::Census;
pub use self::by_hand::write_tasks;
pub use self::server::Running;
use super::child::{self, ChildProcess};
use super::{RedisServer, connection, eventually, unique_prefix};

/// How long anything may take that is not measured.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Far enough away for a test never to see it.
pub const HOUR: Duration = Duration::from_secs(3600);

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A task of the kind `kind`.
pub fn task(payload: impl Into<Vec<u8>>) -> NewTask {
    RawTask::new("kind", payload).into()
}

/// The state sets, one of which every record stands in.
pub const STATES: [&str; 6] = [
    "pending",
    "active",
    "scheduled",
    "retry",
    "archived",
    "completed",
];

#[derive(Clone)]
pub struct Stage {
    url: String,
    pub prefix: String,
    redis: MultiplexedConnection,
    /// What the stage itself enqueues with.
    client: OnceCell<Client>,
}

impl Stage {
    /// On the Redis that the tests share.
    pub async fn new(name: &str) -> Self {
        Self::on(RedisServer::shared(), name).await
    }

    /// On a Redis of the test's own.
    pub async fn on(redis: &RedisServer, name: &str) -> Self {
        Self::at(redis.url(), unique_prefix(name), redis.connection().await)
    }

    pub fn at(url: String, prefix: String, redis: MultiplexedConnection) -> Self {
        let client = OnceCell::new();
        Self {
            url,
            prefix,
            redis,
            client,
        }
    }

    /// Clients and servers reach Redis there; the test's own looks stay direct.
    pub fn behind(self, url: String) -> Self {
        Self::at(url, self.prefix, self.redis)
    }

    /// The same keys, looked at through a new connection: Redis was restarted.
    pub async fn reconnect(&mut self, redis: &RedisServer) {
        self.redis = redis.connection().await;
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn redis(&self) -> MultiplexedConnection {
        self.redis.clone()
    }

    pub fn config(&self) -> RedisConfig {
        self.config_of(&self.url)
    }

    /// The stage's keys, reached in another way.
    pub fn config_of(&self, url: &str) -> RedisConfig {
        RedisConfig::new(url).prefix(&self.prefix)
    }

    pub fn client_builder(&self) -> ClientBuilder {
        Client::builder().redis(self.config())
    }

    pub async fn client(&self) -> Client {
        let client = self.client_builder().connect().await;
        client.expect("the test's Redis is there")
    }

    /// Enqueues a task; returns its id.
    pub async fn enqueue(&self, task: impl Into<NewTask>) -> String {
        self.enqueue_many([task]).await.remove(0)
    }

    /// Enqueues tasks; returns their ids, in order.
    pub async fn enqueue_many<T: Into<NewTask>>(
        &self,
        tasks: impl IntoIterator<Item = T>,
    ) -> Vec<String> {
        let client = self.client.get_or_init(|| self.client()).await;
        let enqueued = client.enqueue_many(tasks).await.into_iter();
        enqueued.map(|task| task.expect("enqueued").id).collect()
    }

    pub fn key_of(&self, queue: &str, name: &str) -> String {
        format!("{}:{{{queue}}}:{name}", self.prefix)
    }

    /// A key of the queue `default`.
    pub fn key(&self, name: &str) -> String {
        self.key_of("default", name)
    }

    pub fn record_key(&self, id: &str) -> String {
        self.key(&format!("t:{id}"))
    }

    /// What `HGETALL` answers for a task of the queue `default`, as text.
    pub async fn record(&self, id: &str) -> BTreeMap<String, String> {
        let record = self.redis().hgetall(self.record_key(id)).await;
        let record: BTreeMap<String, Vec<u8>> = record.expect("a record is a hash");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        record.into_iter().map(|(k, v)| (k, text(v))).collect()
    }

    /// A field of a task's record.
    pub async fn field(&self, id: &str, field: &str) -> Option<String> {
        let value = self.redis().hget(self.record_key(id), field).await;
        value.expect("a record is a hash")
    }

    /// A number in the `meta` of the queue `default`.
    pub async fn meta(&self, field: &str) -> Option<u64> {
        let value = self.redis().hget(self.key("meta"), field).await;
        value.expect("it is a number")
    }

    /// The members of a sorted set of the queue `default` and their scores, lowest first.
    pub async fn scores(&self, set: &str) -> Vec<(String, f64)> {
        let members = self.redis().zrange_withscores(self.key(set), 0, -1).await;
        members.expect("it is a sorted set")
    }

    /// The ids in a sorted set of the queue `default`, lowest score first.
    pub async fn ids(&self, set: &str) -> Vec<String> {
        let scores = self.scores(set).await;
        scores.into_iter().map(|(id, _)| id).collect()
    }

    pub async fn ids_of(&self, queue: &str, set: &str) -> Vec<String> {
        let ids = self.redis().zrange(self.key_of(queue, set), 0, -1).await;
        ids.expect("it is a sorted set")
    }

    pub async fn count_of(&self, queue: &str, set: &str) -> usize {
        let count = self.redis().zcard(self.key_of(queue, set)).await;
        count.expect("it is a sorted set")
    }

    pub async fn count(&self, set: &str) -> usize {
        self.count_of("default", set).await
    }

    /// What a command answers for each state set. At one moment, because tasks are on their way from
    /// one to another; by a script, because a full Redis refuses transactions.
    pub async fn ask_states<T: FromRedisValue>(
        &self,
        queue: &str,
        command: &str,
        member: Option<&str>,
    ) -> Result<T, redis::RedisError> {
        const SCRIPT: &str = "#!lua flags=no-writes\n\
            local answers = {}\n\
            for i, key in ipairs(KEYS) do answers[i] = redis.call(ARGV[1], key, unpack(ARGV, 2)) end\n\
            return answers";
        let mut ask = redis::cmd("EVAL");
        ask.arg(SCRIPT).arg(STATES.len());
        ask.arg(STATES.map(|state| self.key_of(queue, state)).to_vec());
        ask.arg(command).arg(member);
        ask.query_async(&mut self.redis()).await
    }

    /// The state of a task of the queue `default`; `gone` when it is in none.
    pub async fn state(&self, id: &str) -> &'static str {
        let scores = self.ask_states("default", "ZSCORE", Some(id)).await;
        let scores: Vec<Option<f64>> = scores.unwrap();
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

    /// What a child process needs to stand on the same stage.
    pub fn environment(&self) -> [(&'static str, &str); 2] {
        [("REDIS", self.url()), ("PREFIX", &self.prefix)]
    }

    /// The stage of the parent of this child process, which ends with it. `None` where somebody ran all
    /// ignored tests.
    pub async fn of_parent() -> Option<Self> {
        if child::end_with_parent() {
            Some(Self::from_environment().await)
        } else {
            None
        }
    }

    /// In a child process.
    pub async fn from_environment() -> Self {
        let get = |name| std::env::var(name).expect("the parent has set it");
        let url = get("REDIS");
        let redis = connection(&url).await;
        Self::at(url, get("PREFIX"), redis)
    }

    /// Runs an ignored test as a child process on this stage: see [`child::spawn`].
    pub fn child(&self, entry: &str) -> ChildProcess {
        child::spawn(entry, &self.environment())
    }

    pub async fn inspector(&self) -> Inspector {
        let inspector = Inspector::connect(self.config()).await;
        inspector.expect("the test's Redis is there")
    }

    /// The queue's keys whose name begins so, sorted.
    pub async fn keys(&self, name: &str) -> Vec<String> {
        let escape = |text: &str| text.replace('{', "[{]").replace('}', "[}]");
        let pattern = escape(&self.key(name)) + "*";
        let mut keys: Vec<String> = self.redis().keys(pattern).await.expect("KEYS is allowed");
        keys.sort_unstable();
        keys
    }

    /// Each key that matches, and its value as `DUMP` shows it.
    pub async fn dumps(&self, pattern: &str) -> BTreeMap<String, Vec<u8>> {
        let mut redis = self.redis();
        let keys: Vec<String> = redis.keys(pattern).await.expect("KEYS is allowed");
        let mut dumps = BTreeMap::new();
        for key in keys {
            let dump = redis::cmd("DUMP").arg(&key).query_async(&mut redis).await;
            dumps.insert(key, dump.expect("DUMP is allowed"));
        }
        dumps
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

    /// Waits until a counter of the queue `default` has reached `count`, and sees that it goes no further.
    pub async fn wait_for_total(&self, counter: &str, count: u64) {
        eventually(&format!("{counter} is {count}"), LIMIT, async || {
            let now = self.total(counter).await;
            if now >= count { Ok(()) } else { Err(now) }
        })
        .await;
        assert_eq!(self.total(counter).await, count, "{counter}");
    }
}
