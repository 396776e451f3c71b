//! What Redis says of what it was asked to do.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::{RedisServer, Stage};

/// How many calls of a command Redis has had, those of scripts included.
pub async fn calls_of(redis: &mut MultiplexedConnection, command: &str) -> u64 {
    let mut info = redis::cmd("INFO");
    info.arg("commandstats");
    let info: String = info.query_async(redis).await.expect("INFO is allowed");
    let prefix = format!("cmdstat_{command}:calls=");
    let line = info.lines().find_map(|line| line.strip_prefix(&prefix));
    let calls = line.and_then(|rest| rest.split(',').next()?.parse().ok());
    calls.unwrap_or(0)
}

/// What a Redis of the test's own does from now on, and what of it took 10 ms or more.
pub struct Watch(MultiplexedConnection);

impl Watch {
    pub async fn start(stage: &Stage) -> Self {
        let mut redis = stage.redis();
        for command in [
            "CONFIG SET slowlog-log-slower-than 10000",
            "CONFIG SET slowlog-max-len 10000",
            "SLOWLOG RESET",
            "CONFIG RESETSTAT",
        ] {
            let (name, arguments) = command.split_once(' ').expect("it has arguments");
            let mut command = redis::cmd(name);
            for argument in arguments.split(' ') {
                command.arg(argument);
            }
            let done: redis::RedisResult<()> = command.query_async(&mut redis).await;
            done.expect("the test's own Redis takes it");
        }
        Self(redis)
    }

    /// How many scripts were called.
    pub async fn script_calls(&mut self) -> u64 {
        calls_of(&mut self.0, "evalsha").await
    }

    /// Prints what was slow; on a quiet machine nothing is.
    pub async fn print(&mut self, what: &str) {
        let mut get = redis::cmd("SLOWLOG");
        get.arg("GET").arg(-1);
        let log: Vec<Vec<redis::Value>> = get.query_async(&mut self.0).await.unwrap();
        let micros: Vec<i64> = log
            .iter()
            .filter_map(|entry| match entry.get(2) {
                Some(redis::Value::Int(micros)) => Some(*micros),
                _ => None,
            })
            .collect();
        assert_eq!(micros.len(), log.len(), "every entry has its time");
        let longest = micros.iter().max().copied().unwrap_or(0);
        let count = micros.len();
        println!("{what}: {count} commands took 10 ms or more, the longest one {longest} µs");
    }
}

/// Sees each command that Redis is sent.
pub struct Monitor(BufReader<TcpStream>);

impl Monitor {
    pub async fn start(redis: &RedisServer) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", redis.port())).await;
        let mut stream = BufReader::new(stream.expect("the test's own Redis is there"));
        stream
            .write_all(b"MONITOR\r\n")
            .await
            .expect("it can be asked");
        let mut answer = String::new();
        stream.read_line(&mut answer).await.expect("it answers");
        assert_eq!(answer.trim(), "+OK");
        Self(stream)
    }

    /// How often each command came in this time; not those that scripts call.
    pub async fn commands_for(mut self, time: Duration) -> BTreeMap<String, usize> {
        let until = Instant::now() + time;
        let mut commands = BTreeMap::new();
        let mut line = String::new();
        while let Ok(read) = timeout_at(until, self.0.read_line(&mut line)).await {
            assert!(read.expect("it can be read") > 0, "Redis is still there");
            if !line.contains(" lua] ") {
                let command = line.split('"').nth(1).unwrap_or(&line);
                *commands.entry(command.to_uppercase()).or_default() += 1;
            }
            line.clear();
        }
        commands
    }
}
