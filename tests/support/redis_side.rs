//! What Redis says of what it was asked to do.

use std::collections::HashSet;

use redis::aio::MultiplexedConnection;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::{LIMIT, RedisServer, Stage, within};

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

/// Sees each command that Redis is sent.
pub struct Monitor(BufReader<TcpStream>);

impl Monitor {
    pub async fn start(redis: &RedisServer) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", redis.port())).await;
        let mut stream = BufReader::new(stream.expect("the test's own Redis is there"));
        let asked = stream.write_all(b"MONITOR\r\n").await;
        asked.expect("it can be asked");
        let mut answer = String::new();
        stream.read_line(&mut answer).await.expect("it answers");
        assert_eq!(answer.trim(), "+OK");
        Self(stream)
    }

    /// The next command.
    pub async fn next(&mut self) -> Command {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).await;
        assert!(read.expect("it can be read") > 0, "Redis is still there");
        Command {
            of_script: line.contains(" lua] "),
            words: line
                .split('"')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect(),
        }
    }

    /// The next command that a client sends.
    pub async fn next_sent(&mut self) -> String {
        loop {
            let command = self.next().await;
            if !command.of_script {
                return command.words[0].to_uppercase();
            }
        }
    }
}

/// A command as MONITOR shows it: `1700000000.000000 [0 127.0.0.1:50000] "BLPOP" "key" …`, where one
/// that a script calls has `lua` for its address.
pub struct Command {
    pub of_script: bool,
    /// Its name and its arguments.
    pub words: Vec<String>,
}

/// Sees what the scripts of a Redis of the test's own do from now on.
pub struct Watch {
    stage: Stage,
    reader: JoinHandle<Work>,
}

/// What scripts did.
#[derive(Debug)]
pub struct Work {
    /// How many calls touched a record.
    pub calls: usize,
    /// The most records that one of them touched.
    pub most_records: usize,
}

const END: &str = "the end of the watch";

impl Watch {
    pub async fn start(redis: &RedisServer, stage: &Stage) -> Self {
        let mut monitor = Monitor::start(redis).await;
        let reader = tokio::spawn(async move {
            let (mut sizes, mut records) = (Vec::new(), HashSet::new());
            loop {
                let command = monitor.next().await;
                if command.of_script {
                    let keys = command.words.into_iter();
                    records.extend(keys.filter(|word| word.contains("}:t:")));
                    continue;
                }
                // The script before it has ended.
                if !records.is_empty() {
                    sizes.push(records.drain().count());
                }
                if command.words.last().is_some_and(|word| word == END) {
                    return Work {
                        calls: sizes.len(),
                        most_records: sizes.into_iter().max().unwrap_or(0),
                    };
                }
            }
        });
        Self {
            stage: stage.clone(),
            reader,
        }
    }

    pub async fn end(self) -> Work {
        let mut echo = redis::cmd("ECHO");
        echo.arg(END);
        let _: String = echo
            .query_async(&mut self.stage.redis())
            .await
            .expect("Redis is there");
        let work = within("the watch ends", LIMIT, self.reader).await;
        work.expect("it can be read")
    }
}
