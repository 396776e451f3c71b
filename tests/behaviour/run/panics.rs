//! Panics in the user's functions: caught, counted, and the server goes on.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use windlass::handler::{FromContext, Next, Outcome};
use windlass::server::{Report, ServerBuilder};
use windlass::task::RawTask;
use windlass::{Router, TaskContext, TaskError};

use crate::support::{LIMIT, Stage, child, eventually};

const MESSAGE: &str = "on purpose";

/// Runs a task of kind `bad` once, which is then archived, and after it one of kind `good`, which
/// must complete. Answers what the bad one left as its error.
async fn run(
    name: &str,
    settings: impl FnOnce(ServerBuilder) -> ServerBuilder,
    router: Router,
) -> (String, Report) {
    let stage = Stage::new(name).await;
    let router = router.raw("good", |_: RawTask| async { Ok::<_, String>(()) });
    let server = stage.serve_with(settings(stage.server()), router).await;
    let client = stage.client().await;
    let bad = client.enqueue(RawTask::new("bad", "x")).id("bad");
    bad.max_retry(0).await.unwrap();
    let record = stage.wait_for_state("bad", "archived").await;
    client.enqueue(RawTask::new("good", "x")).await.unwrap();
    eventually("the next task completes", LIMIT, async || {
        let stats = server.handle.stats();
        if stats.completed == 1 {
            Ok(())
        } else {
            Err(stats)
        }
    })
    .await;
    assert_eq!(server.handle.running(), 0);
    stage.audit().await;
    (record["last_error"].clone(), server.stop().await)
}

/// The text of a panic in this file.
#[track_caller]
fn assert_panicked_here(text: &str) {
    let place = format!("panicked at {}:", file!());
    assert!(
        text.starts_with(&place) && text.ends_with(MESSAGE),
        "{text}"
    );
}

fn plain(settings: ServerBuilder) -> ServerBuilder {
    settings
}

#[tokio::test]
async fn a_panic_in_a_handler_is_its_error() {
    let at_once = |_: RawTask| -> std::future::Ready<Result<(), String>> { panic!("{MESSAGE}") };
    let later = |_: RawTask| async {
        tokio::task::yield_now().await;
        let text: Result<(), String> = Err(MESSAGE.to_owned());
        text.map_err(|text| -> String { panic!("{text}") })
    };
    fn blocking(_: RawTask) -> Result<(), String> {
        panic!("{MESSAGE}")
    }
    let routers = [
        Router::new().raw("bad", at_once),
        Router::new().raw("bad", later),
        Router::new().blocking_raw("bad", blocking),
    ];
    for router in routers {
        let (text, report) = run("handler", plain, router).await;
        assert_panicked_here(&text);
        assert_eq!(report.stats.panics, 1);
    }
}

#[tokio::test]
#[ignore = "runs in a child process of other tests"]
async fn without_places() {
    static SEEN: AtomicU32 = AtomicU32::new(0);
    if !child::end_with_parent() {
        return;
    }
    std::panic::set_hook(Box::new(|_| {
        SEEN.fetch_add(1, Ordering::Relaxed);
    }));
    let router = || Router::new().raw("bad", |_: RawTask| async { on_purpose() });
    let hidden = |settings: ServerBuilder| settings.panic_places(false);
    let (text, _) = run("hidden", hidden, router()).await;
    assert_eq!(text, format!("panicked: {MESSAGE}"));
    // The first server that may set the hook does, and the program's is called all the same.
    let (text, _) = run("shown", plain, router()).await;
    assert_panicked_here(&text);
    assert_eq!(SEEN.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn the_panic_hook_is_the_programs_unless_a_server_may_show_places() {
    let mut child = child::spawn("run::panics::without_places", &[]);
    let status = child.wait_exit(LIMIT).await;
    assert!(status.success(), "{status}");
}

fn on_purpose() -> Result<(), String> {
    panic!("{MESSAGE}")
}

async fn fails(_: RawTask) -> Result<(), String> {
    Err("an error".into())
}

#[tokio::test]
async fn a_panic_in_middleware_is_the_error_of_the_task() {
    async fn middleware(context: TaskContext, next: Next) -> Outcome {
        let outcome = next.run(context.clone()).await;
        if context.kind() == "bad" {
            panic!("{MESSAGE}");
        }
        outcome
    }
    let router = Router::new().raw("bad", fails).middleware(middleware);
    let (text, report) = run("middleware", plain, router).await;
    assert_panicked_here(&text);
    assert_eq!(report.stats.panics, 1);
}

#[tokio::test]
async fn a_panic_in_an_extractor_is_the_error_of_the_task() {
    struct Bad;
    impl FromContext for Bad {
        type Error = String;
        fn from_context(_: &TaskContext) -> Result<Self, String> {
            panic!("{MESSAGE}")
        }
    }
    let router = Router::new().raw("bad", |_: RawTask, _: Bad| async { Ok::<_, String>(()) });
    let (text, report) = run("extractor", plain, router).await;
    assert_panicked_here(&text);
    assert_eq!(report.stats.panics, 1);
}

#[tokio::test]
async fn a_panic_in_is_failure_lets_the_error_count() {
    let settings = |settings: ServerBuilder| settings.is_failure(|_| panic!("{MESSAGE}"));
    let (text, report) = run("is-failure", settings, Router::new().raw("bad", fails)).await;
    assert_eq!(text, "an error");
    assert_eq!(report.stats.panics, 1);
}

#[tokio::test]
async fn a_panic_in_retry_delay_does_not_stop_the_retry() {
    let settings = |settings: ServerBuilder| {
        settings
            .retry_delay(|_| panic!("{MESSAGE}"))
            // No failure the first time: so the delay is asked for.
            .is_failure({
                let calls = AtomicU32::new(0);
                move |_| calls.fetch_add(1, Ordering::Relaxed) > 0
            })
    };
    let stage = Stage::new("retry-delay").await;
    let router = Router::new().raw("bad", fails);
    let server = stage.serve_with(settings(stage.server()), router).await;
    let enqueue = stage.client().await.enqueue(RawTask::new("bad", "x"));
    let id = enqueue.max_retry(0).await.unwrap().id;
    stage.wait_for_state(&id, "retry").await;
    assert_eq!(server.stop().await.stats.panics, 1);
}

#[tokio::test]
async fn a_panic_in_an_observer_is_its_own_affair() {
    let seen = Arc::new(AtomicU32::new(0));
    let events = seen.clone();
    let settings = |settings: ServerBuilder| {
        settings.on_event(move |_| {
            events.fetch_add(1, Ordering::Relaxed);
            panic!("{MESSAGE}")
        })
    };
    let (text, report) = run("on-event", settings, Router::new().raw("bad", fails)).await;
    assert_eq!(text, "an error");
    let events = u64::from(seen.load(Ordering::Relaxed));
    assert!(events > 0);
    assert_eq!(report.stats.panics, events);
}

struct Explosive;

impl fmt::Display for Explosive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error")
    }
}

impl fmt::Debug for Explosive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error")
    }
}

impl Error for Explosive {}

impl Drop for Explosive {
    fn drop(&mut self) {
        panic!("{MESSAGE}");
    }
}

#[tokio::test]
async fn an_error_that_panics_when_it_is_dropped_stops_nothing() {
    let explode = |_: RawTask| async { Err::<(), _>(Explosive) };
    let (text, _) = run("drop", plain, Router::new().raw("bad", explode)).await;
    assert_eq!(text, "an error");
    let wrapped = |_: RawTask| async { Err::<(), _>(TaskError::skip_retry(Explosive)) };
    let (text, _) = run("drop", plain, Router::new().raw("bad", wrapped)).await;
    assert_eq!(text, "an error");
    fn blocking(_: RawTask) -> Result<(), Explosive> {
        Err(Explosive)
    }
    let (text, _) = run("drop", plain, Router::new().blocking_raw("bad", blocking)).await;
    assert_eq!(text, "an error");
}

#[tokio::test]
async fn a_handler_that_panics_when_it_is_cut_off_stops_nothing() {
    let stuck = |_: RawTask| async {
        let _explosive = Explosive;
        std::future::pending::<Result<(), String>>().await
    };
    let stage = Stage::new("cut-off").await;
    let settings = stage.server().cancel_grace(Duration::ZERO);
    let server = stage
        .serve_with(settings, Router::new().raw("bad", stuck))
        .await;
    let enqueue = stage.client().await.enqueue(RawTask::new("bad", "x"));
    let enqueue = enqueue.max_retry(0).timeout(Duration::from_millis(50));
    let id = enqueue.await.unwrap().id;
    let record = stage.wait_for_state(&id, "archived").await;
    assert_eq!(record["last_error"], "timed out after 50ms");
    stage.audit().await;
    server.stop().await;
}
