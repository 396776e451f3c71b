use std::io;

use redis::{RedisError, Value, parse_redis_value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::broker::connection::credentials::Credentials;
use crate::broker::connection::dial::Stream;
use crate::broker::connection::problem::{ConnectProblem, Failure};

/// No line of a reply is longer.
const LINE: usize = 4096;

/// Logs in, selects the database, and makes sure that it is Redis that answers.
///
/// Before the library has the stream, because that does not ask whether a login is missing, and does
/// not read what Redis says when it closes a connection that it does not want.
pub(super) async fn shake_hands(
    stream: Box<dyn Stream>,
    login: Option<&Credentials>,
    database: i64,
) -> Result<Box<dyn Stream>, Failure> {
    let mut greeting = redis::pipe();
    if let Some(login) = login {
        greeting.cmd("AUTH").arg(&login.user).arg(&login.password);
    }
    if database != 0 {
        greeting.cmd("SELECT").arg(database);
    }
    let before_ping = greeting.len();
    greeting.cmd("PING");
    let mut stream = BufReader::with_capacity(LINE, stream);
    let written = async {
        stream.write_all(&greeting.get_packed_pipeline()).await?;
        stream.flush().await
    }
    .await;
    // Also where that failed: Redis may have said why it closed the connection.
    for _ in 0..before_ping {
        if let Err(error) = reply(&mut stream).await? {
            return Err(Failure::said(error));
        }
    }
    if let Err(error) = reply(&mut stream).await?
        && !may_pass(&error)
    {
        return Err(Failure::said(error));
    }
    written?;
    if !stream.buffer().is_empty() {
        return Err(not_redis("it said more than it was asked for").into());
    }
    Ok(stream.into_inner())
}

/// Whether an answer to PING is the business of the commands to come: Redis loads its data, say, or
/// this user may not ping.
fn may_pass(error: &RedisError) -> bool {
    match Failure::problem_of(error) {
        ConnectProblem::Login => error.code() == Some("NOPERM"),
        ConnectProblem::TooManyClients | ConnectProblem::TurnedAway => false,
        _ => true,
    }
}

/// What Redis said: yes, or why not.
async fn reply(
    stream: &mut BufReader<Box<dyn Stream>>,
) -> Result<Result<(), RedisError>, io::Error> {
    let mut line = Vec::new();
    stream
        .take(LINE as u64)
        .read_until(b'\n', &mut line)
        .await?;
    match line.first() {
        None => Err(io::ErrorKind::UnexpectedEof.into()),
        Some(b'+') if line.ends_with(b"\r\n") => Ok(Ok(())),
        Some(b'-') if line.ends_with(b"\r\n") => {
            let said = parse_redis_value(&line).and_then(Value::extract_error);
            Ok(said.map(drop))
        }
        Some(_) => Err(not_redis("this is no reply of Redis")),
    }
}

fn not_redis(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
