//! What the benchmarks share: their options, statistics, and what they say about the machine.

// Each benchmark uses only a part of it.
#![allow(dead_code)]

use std::error::Error;
use std::thread::available_parallelism;

use redis::aio::MultiplexedConnection;

pub type Failure = Box<dyn Error + Send + Sync>;

/// The number after `--name` on the command line.
pub fn option(name: &str, default: usize) -> Result<usize, Failure> {
    let flag = format!("--{name}");
    let mut args = std::env::args().skip_while(|arg| *arg != flag);
    if args.next().is_none() {
        return Ok(default);
    }
    let value = args.next().ok_or(format!("{flag} needs a number"))?;
    value
        .parse()
        .map_err(|_| format!("{flag} needs a number, not {value:?}").into())
}

/// The value below which this share of the values lies.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted[place.clamp(1, sorted.len()) - 1]
}

pub fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// A connection as the library makes its own: without Nagle's delay, and as patient as a blocking
/// command needs.
pub async fn connect(url: &str) -> Result<MultiplexedConnection, Failure> {
    use redis::IntoConnectionInfo;
    use redis::io::tcp::TcpSettings;

    let info = url
        .into_connection_info()?
        .set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    Ok(redis::Client::open(info)?
        .get_multiplexed_async_connection_with_config(&config)
        .await?)
}

/// A field of Redis' `INFO`.
pub async fn info(redis: &mut MultiplexedConnection, field: &str) -> Result<String, Failure> {
    let text: String = redis::cmd("INFO").arg("all").query_async(redis).await?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    Ok(value.unwrap_or_default().to_owned())
}

/// Prints where and how the figures were made.
pub async fn print_circumstances(
    redis: &mut MultiplexedConnection,
    command: &str,
) -> Result<(), Failure> {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().filter(|load| !load.is_empty());
    println!(
        "machine: {} cores, load {}, Redis {}",
        available_parallelism()?,
        load.unwrap_or("unknown"),
        info(redis, "redis_version").await?,
    );
    println!("repeat:  {command}");
    Ok(())
}
