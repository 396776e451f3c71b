//! Redis: a private server with the recommended settings, and what there is to see in it.

use std::path::Path;

use redis::aio::MultiplexedConnection;

use crate::settings::QUEUE;
use crate::support::RedisServer;

const SETTINGS: &str = include_str!("../../docker/redis.conf");

/// Where the server listens and keeps its files is the demo's business.
const OURS: [&str; 9] = [
    "bind",
    "port",
    "dir",
    "unixsocket",
    "protected-mode",
    "daemonize",
    "logfile",
    "pidfile",
    "aclfile",
];

/// Starts Redis on a free loopback port. Blocks until it answers.
pub fn start(data: &Path) -> anyhow::Result<RedisServer> {
    std::fs::create_dir_all(data)?;
    let dir = format!("\"{}\"", data.display());
    let mut config = vec![("dir", dir.as_str())];
    let lines = SETTINGS.lines().map(str::trim);
    let settings = lines.filter_map(|line| line.split_once(char::is_whitespace));
    config.extend(
        settings
            .map(|(name, value)| (name, value.trim()))
            .filter(|(name, _)| !name.starts_with('#') && !OURS.contains(name)),
    );
    Ok(RedisServer::start(&config))
}

/// How many tasks stand in each state, and how many tries were repeated.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub pending: usize,
    pub active: usize,
    pub scheduled: usize,
    pub retry: usize,
    pub archived: usize,
    pub retries: usize,
}

impl Counts {
    /// Tasks that are still to be run.
    pub fn open(&self) -> usize {
        self.pending + self.active + self.scheduled + self.retry
    }
}

/// The same that an operator reads with redis-cli.
pub struct Store(pub MultiplexedConnection);

impl Store {
    pub async fn counts(&mut self) -> anyhow::Result<Counts> {
        let (pending, active, scheduled, retry, archived, retries): (
            usize,
            usize,
            usize,
            usize,
            usize,
            Option<usize>,
        ) = redis::pipe()
            .atomic()
            .zcard(key("pending"))
            .zcard(key("active"))
            .zcard(key("scheduled"))
            .zcard(key("retry"))
            .zcard(key("archived"))
            .hget(key("stats"), "retried")
            .query_async(&mut self.0)
            .await?;
        Ok(Counts {
            pending,
            active,
            scheduled,
            retry,
            archived,
            retries: retries.unwrap_or(0),
        })
    }

    /// The tasks of which a server holds the leases: entries are `id`, `number@server …`.
    pub async fn held_by(&mut self, server: &str) -> anyhow::Result<Vec<String>> {
        let leases: Vec<(String, String)> = redis::cmd("HGETALL")
            .arg(key("leases"))
            .query_async(&mut self.0)
            .await?;
        let holder = format!("@{server} ");
        let held = leases.into_iter().filter(|(_, v)| v.contains(&holder));
        Ok(held.map(|(id, _)| id).collect())
    }

    pub async fn archived(&mut self) -> anyhow::Result<Vec<String>> {
        let ids = redis::cmd("ZRANGE")
            .arg(key("archived"))
            .arg(0)
            .arg(-1)
            .query_async(&mut self.0)
            .await?;
        Ok(ids)
    }
}

fn key(name: &str) -> String {
    format!("windlass:{{{QUEUE}}}:{name}")
}
