//! How long a failed task waits: by the server's function, unless the handler says otherwise.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass::server::Event;
use windlass::task::RawTask;
use windlass::{Router, TaskError};

use crate::support::{LIMIT, Running, Stage, eventually};

/// A router whose handler fails as the payload says.
fn router() -> Router {
    Router::new().raw("failing", |task: RawTask| async move {
        let text = String::from_utf8_lossy(&task.payload).into_owned();
        match text.strip_prefix("after ") {
            Some(ms) => {
                let delay = Duration::from_millis(ms.parse().unwrap_or(u64::MAX));
                Err::<(), _>(TaskError::retry_after("after", delay).into())
            }
            None if text == "snooze for ever" => Err(TaskError::snooze(Duration::MAX).into()),
            None => Err(anyhow::anyhow!(text)),
        }
    })
}

/// Until the task in `retry` is due, counted from its failure, in ms.
async fn delay_of(stage: &Stage, id: &str) -> u64 {
    let record = stage.wait_for_state(id, "retry").await;
    let failed_at: u64 = record["last_failed_at"].parse().unwrap();
    let scores = stage.scores("retry").await;
    let (_, due) = scores.into_iter().find(|(other, _)| other == id).unwrap();
    due as u64 - failed_at
}

async fn enqueue(stage: &Stage, payload: &str) -> String {
    let client = stage.client().await;
    let task = RawTask::new("failing", payload);
    client.enqueue(task).await.unwrap().id
}

#[tokio::test]
async fn the_function_of_the_server_sees_the_attempt_and_decides() {
    let stage = Stage::new("function").await;
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = calls.clone();
    let settings = stage.server().retry_delay(move |attempt| {
        let what = (attempt.id.to_owned(), attempt.retried, attempt.max_retry);
        let how = format!("{} {} {}", attempt.kind, attempt.queue, attempt.error);
        noted.lock().unwrap().push((what, how));
        match attempt.retried {
            0 => Duration::ZERO,
            n => Duration::from_millis(100_000 + u64::from(n)),
        }
    });
    let server = stage.serve_with(settings, router()).await;
    let id = enqueue(&stage, "oh").await;
    // Rounded up to the next ms, so that it is never early.
    assert!((100_001..=100_002).contains(&delay_of(&stage, &id).await));
    let how = "failing default oh".to_owned();
    let expected = [0, 1].map(|n| ((id.clone(), n, 25), how.clone()));
    assert_eq!(*calls.lock().unwrap(), expected);
    stage.audit().await;
    server.stop().await;
}

#[tokio::test]
async fn a_delay_that_the_handler_gives_beats_the_function() {
    let stage = Stage::new("beats").await;
    let settings = stage.server().retry_delay(|_| Duration::from_secs(7));
    let server = stage.serve_with(settings, router()).await;
    let id = enqueue(&stage, "after 12345").await;
    assert!((12_345..=12_346).contains(&delay_of(&stage, &id).await));
    let id = enqueue(&stage, "plain").await;
    assert!((7_000..=7_001).contains(&delay_of(&stage, &id).await));
    server.stop().await;
}

/// A server with this function as its retry delay, and the functions of it that panicked.
async fn serve_with(
    stage: &Stage,
    delay: impl Fn() -> Duration + Send + Sync + 'static,
) -> (Running, Arc<Mutex<Vec<&'static str>>>) {
    let panicked = Arc::new(Mutex::new(Vec::new()));
    let noted = panicked.clone();
    let settings = stage.server().retry_delay(move |_| delay());
    let settings = settings.on_event(move |event| {
        if let Event::CallbackPanicked(function) = event {
            noted.lock().unwrap().push(*function);
        }
    });
    (stage.serve_with(settings, router()).await, panicked)
}

#[tokio::test]
async fn a_function_that_panics_is_replaced_by_the_default() {
    let stage = Stage::new("panicking").await;
    let days = std::hint::black_box(u32::MAX);
    let functions: [Box<dyn Fn() -> Duration + Send + Sync>; 3] = [
        Box::new(|| panic!("no delay")),
        Box::new(move || Duration::from_secs(u64::from(days)) * u32::MAX * u32::MAX),
        Box::new(|| Duration::from_secs_f64(f64::NAN)),
    ];
    for function in functions {
        let (server, panicked) = serve_with(&stage, function).await;
        let id = enqueue(&stage, "plain").await;
        let delay = delay_of(&stage, &id).await;
        assert!((15_000..=45_001).contains(&delay), "{delay}");
        assert_eq!(server.stop().await.stats.panics, 1);
        assert_eq!(*panicked.lock().unwrap(), ["retry_delay"]);
    }
}

#[tokio::test]
async fn a_delay_without_end_stops_nothing() {
    let stage = Stage::new("endless").await;
    let (server, panicked) = serve_with(&stage, || Duration::MAX).await;
    let by_function = enqueue(&stage, "plain").await;
    stage.wait_for_state(&by_function, "retry").await;
    let by_handler = enqueue(&stage, "after for ever").await;
    stage.wait_for_state(&by_handler, "retry").await;
    let snoozed = enqueue(&stage, "snooze for ever").await;
    stage.wait_for_state(&snoozed, "scheduled").await;
    let dues = [stage.scores("retry").await, stage.scores("scheduled").await].concat();
    // Whole numbers up to 2^53 are exact in a score and in Lua.
    assert!(dues.iter().all(|(_, due)| *due < 2f64.powi(53)), "{dues:?}");

    // Others still run, and this server and a fresh one still hear of due times.
    let soon = enqueue(&stage, "after 20").await;
    eventually("the next one is tried again", LIMIT, async || {
        let record = stage.record(&soon).await;
        record
            .get("retried")
            .is_some_and(|n| n != "1")
            .then_some(())
    })
    .await;
    assert!(panicked.lock().unwrap().is_empty());
    stage.audit().await;
    server.stop().await;
}
