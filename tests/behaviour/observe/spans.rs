//! What a user's code logs names the task that it runs for, wherever it runs.

use std::io::Write;
use std::sync::Mutex;

use windlass::handler::{DeadLetter, FromContext, Next, Outcome};
use windlass::server::default_retry_delay;
use windlass::task::RawTask;
use windlass::{Router, TaskContext};

use crate::support::{LIMIT, Stage, child, eventually};

/// What is logged in this process.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct ToLog;

impl Write for ToLog {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn say(what: &str) {
    tracing::info!("said by {what}");
}

/// The lines that were logged with these words.
fn said_by(what: &str) -> Vec<String> {
    let log = String::from_utf8_lossy(&LOG.lock().unwrap()).into_owned();
    let words = format!("said by {what}");
    let lines = log.lines().filter(|line| line.ends_with(&words));
    lines.map(str::to_owned).collect()
}

struct Extractor;

impl FromContext for Extractor {
    type Error = String;

    fn from_context(_: &TaskContext) -> Result<Self, String> {
        say("extractor");
        Ok(Self)
    }
}

async fn middleware(context: TaskContext, next: Next) -> Outcome {
    say("middleware");
    next.run(context).await
}

async fn fails(_: RawTask, _: Extractor) -> Result<(), String> {
    say("handler");
    tokio::task::yield_now().await;
    say("handler later");
    Err("oh".into())
}

fn blocks(_: RawTask) -> Result<(), String> {
    say("blocking handler");
    Ok(())
}

fn hook(_: DeadLetter) -> impl Future<Output = Result<(), String>> + Send + 'static {
    say("hook");
    async {
        tokio::task::yield_now().await;
        say("hook later");
        Ok(())
    }
}

#[tokio::test]
#[ignore = "runs in a child process of other tests"]
async fn all_say_something() {
    if !child::end_with_parent() {
        return;
    }
    // For all threads of this process, which is why it is one of its own.
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(|| ToLog)
        .init();
    let stage = Stage::new("spans").await;
    let settings = stage.server().on_event(|_| say("observer"));
    let settings = settings.is_failure(|_| {
        say("is_failure");
        true
    });
    let settings = settings.retry_delay(|attempt| {
        say("retry_delay");
        default_retry_delay(attempt.retried) / 10_000
    });
    let router = Router::new()
        .raw("fails", fails)
        .blocking_raw("blocks", blocks)
        .middleware(middleware)
        .on_dead_letter("fails", hook);
    let server = stage.serve_with(settings, router).await;
    let client = stage.client().await;
    let enqueue = client.enqueue(RawTask::new("fails", "x")).id("one");
    enqueue.max_retry(1).await.unwrap();
    let enqueue = client.enqueue(RawTask::new("blocks", "x")).id("two");
    enqueue.await.unwrap();
    let of_one = [
        ("middleware", 2),
        ("extractor", 2),
        ("handler", 2),
        ("handler later", 2),
        ("is_failure", 2),
        ("retry_delay", 1),
        ("observer", 2),
        ("hook", 1),
        ("hook later", 1),
    ];
    for (id, expected) in [("one", &of_one[..]), ("two", &[("blocking handler", 1)])] {
        for (what, times) in expected {
            let named = format!("task.id=\"{id}\"");
            let count = async || {
                let lines = said_by(what);
                let count = lines.iter().filter(|line| line.contains(&named)).count();
                if count == *times { Ok(()) } else { Err(lines) }
            };
            eventually(what, LIMIT, count).await;
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn what_users_code_logs_names_its_task() {
    let mut child = child::spawn("observe::spans::all_say_something", &[]);
    let status = child.wait_exit(LIMIT * 2).await;
    assert!(status.success(), "{status}");
}
