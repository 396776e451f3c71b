//! The scripts on a real Redis, under a clock of the test's own.

mod call;
mod deeds;
mod enqueue;
mod others;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisResult, Value, from_redis_value};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::broker::{Keys, LeasedId, Link, Queue, RedisConfig, clock};
use crate::keys::Keys as Found;
use crate::model::Model;
use crate::support::RedisServer;

pub const PREFIX: &str = "model";
pub const BASE: &str = "model:{q}";
pub const SERVER_FIELD: (&str, &str) = ("host", "here");

const LIMIT: Duration = Duration::from_secs(10);

/// One for all runs; each begins with an empty Redis.
pub struct System {
    /// As the scripts' callers use it.
    link: Link,
    /// The test's own looks and deeds; it also hears what is published. What a script publishes has
    /// arrived here when the answer to a later command has.
    eyes: MultiplexedConnection,
    heard: UnboundedReceiver<PushInfo>,
    keys: Keys,
    queue: Queue,
    view: redis::Script,
    /// What the last tick found.
    found: BTreeMap<String, LeasedId>,
    /// Leases whose claims told of a lock or a retention: id and holder.
    end_effects: BTreeSet<(String, String)>,
    /// The locks that have an end, as last seen.
    ending_locks: Vec<String>,
    started: Instant,
}

impl System {
    pub async fn new(redis: &RedisServer) -> Self {
        let config = RedisConfig::new(redis.url()).command_timeout(LIMIT);
        let (endpoint, keys) = config.prefix(PREFIX).open().expect("it is valid");
        let (sender, heard) = unbounded_channel();
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(Some(LIMIT))
            .set_push_sender(sender);
        let url = redis.url() + "?protocol=resp3";
        let client = redis::Client::open(url).expect("the URL is valid");
        let eyes = client.get_multiplexed_async_connection_with_config(&config);
        let mut eyes = eyes.await.expect("the test's Redis is there");
        eyes.psubscribe(format!("{PREFIX}:*"))
            .await
            .expect("RESP3 can subscribe");
        Self {
            link: Link::new(endpoint),
            eyes,
            heard,
            queue: keys.queue("q"),
            keys,
            view: view::script(),
            found: BTreeMap::new(),
            end_effects: BTreeSet::new(),
            ending_locks: Vec::new(),
            started: Instant::now(),
        }
    }

    /// Forgets the run before.
    pub async fn reset(&mut self) {
        self.tell(&redis::cmd("FLUSHDB")).await;
        self.found.clear();
        self.end_effects.clear();
        self.ending_locks.clear();
        self.started = Instant::now();
        while self.heard.try_recv().is_ok() {}
    }

    /// Scripts take this for the time.
    fn set_clock(&self, model: &Model) {
        clock::NOW.set(Some(model.now));
    }

    async fn tell(&mut self, command: &redis::Cmd) {
        let reply: RedisResult<Value> = command.query_async(&mut self.eyes).await;
        reply.expect("the test's own commands are right");
    }

    /// Everything that Redis holds, and for how long this run has lasted, in ms.
    pub async fn look(&mut self) -> (Found, u64) {
        let invocation = self.view.prepare_invoke();
        let view: RedisResult<String> = invocation.invoke_async(&mut self.eyes).await;
        let keys = view::parse(&view.expect("the test's own script is right"));
        let locks = keys.iter().filter(|(name, key)| {
            name.starts_with("model:{q}:unique:") && key.expires_in.is_some()
        });
        self.ending_locks = locks.map(|(name, _)| name.clone()).collect();
        (keys, self.started.elapsed().as_millis() as u64)
    }

    /// What was published since the last call, sorted: channel, after the prefix, and message.
    pub fn heard(&mut self) -> Vec<(String, String)> {
        let mut messages = Vec::new();
        while let Ok(push) = self.heard.try_recv() {
            if push.kind == PushKind::PMessage {
                let mut data = push.data.into_iter().skip(1);
                let mut text = || -> String {
                    let value = data.next().expect("a message has channel and text");
                    from_redis_value(value).expect("it is text")
                };
                let (channel, message) = (text(), text());
                let channel = channel.trim_start_matches("model:").to_owned();
                messages.push((channel, message));
            }
        }
        messages.sort();
        messages
    }
}
