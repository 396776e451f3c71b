//! Thousands of tasks that die in every way, under two servers: whoever counts them counts the same.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;
use windlass::handler::DeadLetter;
use windlass::inspector::CancelMode;
use windlass::server::{Event, ServerBuilder, Stats, Undecodable, UnknownKind};
use windlass::task::RawTask;
use windlass::{Client, NewTask, Router, Task, TaskContext, TaskError};

use crate::support::{HOUR, Log, Running, Stage, child, eventually, ms, seen};

/// Of each way. Every second one was lost by a server that is dead, and recovered, before it died.
const TASKS: usize = 500;
const LIMIT: Duration = Duration::from_secs(120);

/// Each way to die, and the reason it is told with.
const WAYS: [(&str, &str); 11] = [
    ("fails", "retries_exhausted"),
    ("last-retry", "retries_exhausted"),
    ("skips", "skipped"),
    ("undecodable", "undecodable"),
    ("unknown", "unknown_kind"),
    ("claimed-late", "deadline_passed"),
    ("waits-too-long", "deadline_passed"),
    ("retried-late", "deadline_passed"),
    ("lost-at-last", "lease_expired"),
    ("lost-in-a-row", "lease_expired"),
    ("cancelled", "cancelled"),
];

#[derive(Serialize, Deserialize)]
struct Export {
    rows: u64,
}

impl Task for Export {
    const KIND: &'static str = "undecodable";
}

type Failed = Box<dyn Error + Send + Sync>;

/// Handlers that die in their way, all but those of an unknown kind, and hooks for every way.
fn router(runs: &UnboundedSender<String>, letters: &UnboundedSender<(String, String)>) -> Router {
    let mut router = Router::new().task(async |_: Export| Ok::<_, String>(()));
    for (way, _) in WAYS {
        if !["undecodable", "unknown"].contains(&way) {
            let runs = runs.clone();
            let handler = move |_: RawTask, context: TaskContext| {
                let runs = runs.clone();
                async move {
                    match way {
                        "skips" => Err(TaskError::skip_retry("skipped").into()),
                        "retried-late" => Err(TaskError::retry_after("failed", HOUR).into()),
                        "cancelled" => {
                            let _ = runs.send(context.id().to_owned());
                            context.cancelled().await;
                            Err::<(), Failed>("cut short".into())
                        }
                        _ => Err("failed".into()),
                    }
                }
            };
            router = router.raw(way, handler);
        }
        let letters = letters.clone();
        router = router.on_dead_letter(way, move |letter: DeadLetter| {
            let told = letters.send((letter.id, letter.reason));
            async move { told.map_err(|error| error.to_string()) }
        });
    }
    router
}

/// The tasks of a way. Those that are recovered first spend a retry for it.
async fn enqueue(stage: &Stage, client: &Client, way: &str) {
    let soon = stage.in_future(ms(100)).await;
    let later = stage.in_future(HOUR / 2).await;
    let tasks = (0..TASKS).map(|n| {
        let is_recovered = u32::from(n % 2 == 1);
        let task = NewTask::from(RawTask::new(way, [0xc1])).id(format!("{way}-{n}"));
        match way {
            "fails" | "cancelled" => task.max_retry(is_recovered),
            "last-retry" => task.max_retry(1 + is_recovered),
            "claimed-late" => task.deadline(UNIX_EPOCH),
            "waits-too-long" => task.delay(HOUR).deadline(soon),
            "retried-late" => task.deadline(later),
            "lost-at-last" => task.max_retry(0).delay(HOUR),
            "lost-in-a-row" => task.delay(HOUR),
            _ => task,
        }
    });
    let enqueued = client.enqueue_many(tasks).await;
    assert!(enqueued.iter().all(Result::is_ok), "{way}");
    for n in 0..TASKS {
        if n % 2 == 1 || way.starts_with("lost") {
            let id = format!("{way}-{n}");
            stage.lose(&id).await;
            if way == "lost-in-a-row" {
                stage.set(&id, "lost", 2).await;
            }
        }
    }
}

/// What is told of deaths: for each reason, how often; and of retries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    retried: usize,
    archived: BTreeMap<String, usize>,
}

#[tokio::test]
async fn logs_events_counters_and_hooks_agree_on_thousands_of_deaths() {
    let mut child = child::spawn("observe::many_deaths::die_and_compare", &[]);
    let status = child.wait_exit(LIMIT * 2).await;
    assert!(status.success(), "{status}");
}

#[tokio::test]
#[ignore = "runs in a child process of other tests"]
async fn die_and_compare() {
    if !child::end_with_parent() {
        return;
    }
    let log = Log::default();
    // For all threads of this process, which is why it is one of its own.
    tracing::subscriber::set_global_default(log.subscriber()).unwrap();
    let stage = Stage::new("many-deaths").await;
    let client = stage.client().await;
    let (runs, mut running) = seen();
    let (letters, mut written) = seen();
    let (tell, mut events) = seen();
    let settings = || -> ServerBuilder {
        let tell = tell.clone();
        let settings = stage.server().unknown_kind(UnknownKind::Archive);
        let settings = settings.undecodable(Undecodable::Archive);
        settings.retry_delay(|_| ms(1)).on_event(move |event| {
            let _ = tell.send(event.clone());
        })
    };
    // Their hooks are known from then on.
    let first = settings().build(router(&runs, &letters)).await.unwrap();
    for (way, _) in WAYS {
        enqueue(&stage, &client, way).await;
    }
    let servers = [
        Running::start(first),
        stage.serve_with(settings(), router(&runs, &letters)).await,
    ];
    let inspector = stage.inspector().await;
    for _ in 0..TASKS {
        let id = running.next().await;
        let cancel = inspector.cancel("default", &id, CancelMode::Archive);
        cancel.await.unwrap();
    }
    let dead = WAYS.len() * TASKS;
    eventually(
        "all are dead, and their hooks have run",
        LIMIT,
        async || {
            let left = [
                dead - stage.count("archived").await,
                stage.count("hooks").await,
            ];
            if left == [0, 0] { Ok(()) } else { Err(left) }
        },
    )
    .await;
    let mut stats = Vec::new();
    for server in servers {
        stats.push(server.stop().await.stats);
    }

    let mut expected = Told::default();
    for (_, reason) in WAYS {
        *expected.archived.entry(reason.to_owned()).or_default() += TASKS;
    }
    // Those that were recovered where a deadline had not passed, and those of the last retry once more.
    expected.retried = 7 * TASKS / 2 + TASKS;
    let recovered = 9 * TASKS / 2 + 2 * TASKS;

    let mut told = Told::default();
    let mut ids = BTreeMap::new();
    for event in events.so_far() {
        match event {
            Event::Retried { .. } => told.retried += 1,
            Event::Archived { task, reason, .. } => {
                assert_eq!(ids.insert(task.id, reason), None);
                *told.archived.entry(reason.to_string()).or_default() += 1;
            }
            _ => {}
        }
    }
    let total = |count: fn(&Stats) -> u64| stats.iter().map(count).sum::<u64>();
    assert_eq!(total(|stats| stats.events_dropped), 0);
    assert_eq!(told, expected, "events");

    let mut ran = BTreeMap::new();
    for (id, reason) in written.so_far() {
        assert_eq!(ids[&id].to_string(), reason, "{id}");
        assert_eq!(ran.insert(id, reason), None, "a hook ran twice");
    }
    assert_eq!(ran.len(), dead, "hooks");

    let retried = expected.retried as u64;
    let archived = total(|stats| stats.archived);
    assert_eq!(
        (archived, total(|stats| stats.retried)),
        (dead as u64, retried)
    );
    assert_eq!(total(|stats| stats.recovered), recovered as u64);
    assert_eq!(total(|stats| stats.hooks_run), dead as u64);

    let totals = stage.totals().await;
    for (reason, count) in &expected.archived {
        assert_eq!(
            totals[&format!("archived_{reason}")],
            *count as u64,
            "{reason}"
        );
    }
    let counted = ["archived", "retried", "recovered", "hooks_run"].map(|name| totals[name]);
    assert_eq!(
        counted,
        [dead, expected.retried, recovered, dead].map(|it| it as u64)
    );

    assert_eq!(log.told("the task was archived"), dead as u64);
    assert_eq!(log.told("the task failed and will be retried"), retried);
    stage.audit().await;
}
