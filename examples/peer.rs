//! The load that task brokers are compared by, as one program with subcommands. Connects to
//! `127.0.0.1:$REDIS_PORT` and prints one line of JSON at its end.
//!
//! ```text
//! enq N seq|conc|bulk C   enqueue N tasks: one at a time, from C tasks at once, or C a call
//! work N C                run a worker at concurrency C until N distinct tasks were handled
//! latwork N               run a worker at default settings, and print how long N tasks waited
//! latenq N MS             enqueue a task every MS milliseconds
//! hold C TAG              a worker whose handlers print `S TAG index unix_ns` and sleep for 600 s
//! ```

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, mpsc};
use windlass::task::RawTask;
use windlass::{Client, Router, Server, State};

const KIND: &str = "bench";

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["enq", n, mode, c] => enqueue(n.parse()?, mode, c.parse()?).await,
        ["work", n, c] => work(n.parse()?, c.parse()?).await,
        ["latwork", n] => measure_latency(n.parse()?).await,
        ["latenq", n, ms] => enqueue_slowly(n.parse()?, ms.parse()?).await,
        ["hold", c, tag] => hold(c.parse()?, tag).await,
        _ => Err(
            "usage: peer enq N seq|conc|bulk C | work N C | latwork N | latenq N MS | hold C TAG"
                .into(),
        ),
    }
}

fn url() -> String {
    let port = std::env::var("REDIS_PORT").unwrap_or_else(|_| "6379".to_owned());
    format!("redis://127.0.0.1:{port}/")
}

fn now_ns() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    since.as_nanos() as i64
}

/// 64 bytes: index, time of enqueue, padding.
fn task(index: usize) -> RawTask {
    RawTask::new(
        KIND,
        format!("{:x<64}", format!("{index:08} {:019} ", now_ns())),
    )
}

/// Index and time of enqueue.
fn parse(payload: &[u8]) -> Result<(usize, i64), Failure> {
    let text = std::str::from_utf8(payload)?;
    Ok((text[..8].parse()?, text[9..28].parse()?))
}

/// User and system time of this process, in seconds.
fn cpu_seconds() -> f64 {
    // Fields 14 and 15 of /proc/self/stat, in ticks of 10 ms; the name before them may hold spaces.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

async fn enqueue(n: usize, mode: &str, c: usize) -> Result<(), Failure> {
    let client = Client::connect(&url()).await?;
    let start = now_ns();
    match mode {
        "seq" => {
            for index in 0..n {
                client.enqueue(task(index)).await?;
            }
        }
        "conc" => {
            let next = Arc::new(AtomicUsize::new(0));
            let producers = (0..c).map(|_| {
                let (client, next) = (client.clone(), next.clone());
                tokio::spawn(async move {
                    loop {
                        let index = next.fetch_add(1, Relaxed);
                        if index >= n {
                            return Ok::<_, Failure>(());
                        }
                        client.enqueue(task(index)).await?;
                    }
                })
            });
            for producer in producers.collect::<Vec<_>>() {
                producer.await??;
            }
        }
        "bulk" => {
            for first in (0..n).step_by(c.max(1)) {
                let tasks = (first..n.min(first + c)).map(task);
                for result in client.enqueue_many(tasks).await {
                    result?;
                }
            }
        }
        other => return Err(format!("unknown mode {other}").into()),
    }
    let seconds = (now_ns() - start) as f64 / 1e9;
    let (rate, cpu) = (n as f64 / seconds, cpu_seconds());
    println!(r#"{{"n":{n},"secs":{seconds},"rate":{rate},"start_ns":{start},"cpu":{cpu}}}"#);
    Ok(())
}

/// What the handlers of `work` count.
struct Tally {
    runs_of: Vec<AtomicU32>,
    runs: AtomicUsize,
    distinct: AtomicUsize,
    first_ns: AtomicI64,
    last_ns: AtomicI64,
    all: Notify,
}

async fn count(task: RawTask, State(tally): State<Arc<Tally>>) -> Result<(), Failure> {
    let (index, _) = parse(&task.payload)?;
    if tally.runs.fetch_add(1, Relaxed) == 0 {
        tally.first_ns.store(now_ns(), Relaxed);
    }
    let runs = tally.runs_of.get(index).ok_or("index out of range")?;
    if runs.fetch_add(1, Relaxed) == 0
        && tally.distinct.fetch_add(1, Relaxed) + 1 == tally.runs_of.len()
    {
        tally.last_ns.store(now_ns(), Relaxed);
        tally.all.notify_one();
    }
    Ok(())
}

async fn work(n: usize, concurrency: usize) -> Result<(), Failure> {
    let tally = Arc::new(Tally {
        runs_of: (0..n).map(|_| AtomicU32::new(0)).collect(),
        runs: AtomicUsize::new(0),
        distinct: AtomicUsize::new(0),
        first_ns: AtomicI64::new(0),
        last_ns: AtomicI64::new(0),
        all: Notify::new(),
    });
    let start = now_ns();
    let router = Router::new().raw(KIND, count).state(tally.clone());
    let server = Server::builder()
        .redis(url())
        .concurrency(concurrency)
        .build(router)
        .await?;
    let done = async {
        println!("READY");
        tally.all.notified().await;
    };
    // The server's end settles everything that was handled.
    let report = server.run_until(done).await?;
    let acked = now_ns();
    if report.unsettled > 0 {
        return Err("not everything was settled".into());
    }
    println!(
        r#"{{"n":{n},"start_ns":{start},"first_ns":{},"last_ns":{},"acked_ns":{acked},"exec":{},"distinct":{},"cpu":{}}}"#,
        tally.first_ns.load(Relaxed),
        tally.last_ns.load(Relaxed),
        tally.runs.load(Relaxed),
        tally.distinct.load(Relaxed),
        cpu_seconds(),
    );
    Ok(())
}

async fn measure_latency(n: usize) -> Result<(), Failure> {
    let (waits, mut waited) = mpsc::unbounded_channel::<f64>();
    let note = |task: RawTask, State(waits): State<mpsc::UnboundedSender<f64>>| async move {
        let now = now_ns();
        let (_, enqueued) = parse(&task.payload)?;
        waits.send((now - enqueued) as f64 / 1e6)?;
        Ok::<_, Failure>(())
    };
    let router = Router::new().raw(KIND, note).state(waits);
    let server = Server::builder().redis(url()).build(router).await?;
    let mut latencies = Vec::with_capacity(n);
    let all = async {
        println!("READY");
        while latencies.len() < n {
            latencies.extend(waited.recv().await);
        }
    };
    server.run_until(all).await?;
    println!(r#"{{"lat_ms":{latencies:?},"cpu":{}}}"#, cpu_seconds());
    Ok(())
}

async fn enqueue_slowly(n: usize, ms: u64) -> Result<(), Failure> {
    let client = Client::connect(&url()).await?;
    let mut ticks = tokio::time::interval(Duration::from_millis(ms.max(1)));
    for index in 0..n {
        ticks.tick().await;
        client.enqueue(task(index)).await?;
    }
    Ok(())
}

async fn hold(concurrency: usize, tag: &str) -> Result<(), Failure> {
    let print_and_sleep = |task: RawTask, State(tag): State<String>| async move {
        let (index, _) = parse(&task.payload)?;
        println!("S {tag} {index} {}", now_ns());
        tokio::time::sleep(Duration::from_secs(600)).await;
        Ok::<_, Failure>(())
    };
    let router = Router::new()
        .raw(KIND, print_and_sleep)
        .state(tag.to_owned());
    let server = Server::builder()
        .redis(url())
        .concurrency(concurrency)
        .build(router)
        .await?;
    println!("READY");
    server.run().await?;
    Ok(())
}
