//! A server without handlers, which looks after queues that others fill and nobody serves.

use std::collections::BTreeSet;
use std::time::Duration;

use windlass::handler::DeadLetter;
use windlass::server::{BuildError, HealthProblem, Phase, ServerBuilder};
use windlass::{NewTask, Router, Server};

use crate::support::{HOUR, LIMIT, Running, Seen, Stage, eventually, ms, puppet, seen, task};

const QUEUES: [&str; 2] = ["default", "other"];

/// Hooks that tell the test of each letter: queue, id and reason.
fn hooks() -> (Router, Seen<[String; 3]>) {
    let (letters, told) = seen();
    let hook = move |letter: DeadLetter| {
        let told = letters.send([letter.queue, letter.id, letter.reason]);
        async move { told.map_err(|error| error.to_string()) }
    };
    (Router::new().on_dead_letter("kind", hook), told)
}

/// Settings of a server whose leases are short.
fn settings(stage: &Stage) -> ServerBuilder {
    let settings = stage.server().lease(ms(1000));
    settings.queues(QUEUES.map(|queue| (queue, 1)))
}

/// A worker that takes a task that may be tried again and one that may not from each queue, and dies.
async fn die_at_work(stage: &Stage) {
    let client = stage.client().await;
    let (router, mut calls) = puppet();
    let worker = stage.serve_with(settings(stage), router).await;
    for queue in QUEUES {
        let into = |task: NewTask| client.enqueue(task).queue(queue);
        into(task("x")).id("lost").await.unwrap();
        into(task("x").max_retry(0))
            .id("lost for ever")
            .await
            .unwrap();
    }
    for _ in 0..4 {
        drop(calls.next().await);
    }
    worker.vanish().await;
}

/// Tasks that are to expire and to come due, which nobody claims.
async fn fill(stage: &Stage) {
    let client = stage.client().await;
    let deadline = stage.in_future(ms(500)).await;
    for queue in QUEUES {
        let into = |task: NewTask| client.enqueue(task).queue(queue);
        into(task("x").deadline(deadline))
            .id("expires")
            .await
            .unwrap();
        into(task("x").delay(ms(500)))
            .id("comes due")
            .await
            .unwrap();
        into(task("x").delay(HOUR)).id("waits").await.unwrap();
    }
}

async fn reaps(stage: &Stage, settings: ServerBuilder) {
    // The hooks are known before anything dies.
    let (router, mut letters) = hooks();
    die_at_work(stage).await;
    let reaper = settings.build_reaper(router).await.unwrap();
    let reaper = Running::start(reaper);
    fill(stage).await;

    let died: BTreeSet<_> = letters.take(4).await.into_iter().collect();
    let expected = QUEUES.map(|queue| {
        [
            [queue, "expires", "deadline_passed"],
            [queue, "lost for ever", "lease_expired"],
        ]
    });
    let expected = expected.concat().into_iter();
    let expected: BTreeSet<_> = expected.map(|words| words.map(str::to_owned)).collect();
    assert_eq!(died, expected);
    for queue in QUEUES {
        for (set, ids) in [
            ("pending", ["comes due", "lost"].as_slice()),
            ("scheduled", &["waits"]),
            ("archived", &["expires", "lost for ever"]),
            ("active", &[]),
            ("hooks", &[]),
        ] {
            eventually(&format!("{queue} {set}"), LIMIT, async || {
                let found = stage.ids_of(queue, set).await;
                let found: BTreeSet<_> = found.iter().map(String::as_str).collect();
                let wanted = ids.iter().copied().collect();
                if found == wanted {
                    Ok(())
                } else {
                    Err(format!("{found:?}"))
                }
            })
            .await;
        }
    }

    // The worker that died is still shown for a while.
    eventually("nobody serves them", LIMIT, async || {
        let problems = reaper.handle.health().problems;
        let unserved = QUEUES.map(|queue| HealthProblem::UnservedQueue(queue.into()));
        if problems == unserved {
            Ok(())
        } else {
            Err(problems)
        }
    })
    .await;
    assert!(reaper.handle.is_live() && reaper.handle.is_ready());
    assert_eq!(reaper.handle.phase(), Phase::Running);

    // Until somebody does.
    let (router, calls) = puppet();
    calls.complete_all();
    let worker = stage.serve_with(self::settings(stage), router).await;
    eventually("they are served", LIMIT, async || {
        let problems = reaper.handle.health().problems;
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    })
    .await;
    for queue in QUEUES {
        eventually("what was taken back runs", LIMIT, async || {
            (stage.count_of(queue, "pending").await == 0).then_some(())
        })
        .await;
    }
    worker.stop().await;
    let stats = reaper.stop().await.stats;
    assert_eq!((stats.claimed, stats.recovered), (0, 4));
    assert_eq!((stats.archived, stats.hooks_run), (4, 4));
    stage.audit().await;
}

#[tokio::test]
async fn it_takes_back_forwards_expires_and_runs_hooks_of_queues_that_it_names() {
    let stage = Stage::new("reaps").await;
    reaps(&stage, settings(&stage)).await;
}

#[tokio::test]
async fn it_does_so_for_all_queues_that_there_are() {
    let stage = Stage::new("reaps-all").await;
    reaps(&stage, stage.server().lease(ms(1000)).all_queues()).await;
}

#[tokio::test]
async fn a_queue_that_is_new_is_looked_after_too() {
    let stage = Stage::new("reaps-new").await;
    let (router, mut letters) = hooks();
    let reaper = stage.server().all_queues().build_reaper(router).await;
    let reaper = Running::start(reaper.unwrap());
    // Its hook is known once the queue is.
    let deadline = stage.in_future(Duration::from_secs(2)).await;
    let client = stage.client().await;
    let late = task("x").queue("new").deadline(deadline).id("late");
    client.enqueue(late).await.unwrap();
    assert_eq!(letters.next().await, ["new", "late", "deadline_passed"]);
    reaper.stop().await;
}

#[tokio::test]
async fn it_takes_no_handlers_and_a_worker_takes_no_unnamed_queues() {
    let stage = Stage::new("reaps-none").await;
    let built = stage.server().build_reaper(puppet().0).await;
    let error = built.map(drop).unwrap_err().to_string();
    assert!(error.contains("the router has handlers"), "{error}");
    let built = stage.server().all_queues().build(puppet().0).await;
    assert!(matches!(built.map(drop), Err(BuildError::AllQueues)));
    let nothing = Server::builder().queues([] as [(&str, u32); 0]);
    let built = nothing.build_reaper(hooks().0).await;
    assert!(matches!(built.map(drop), Err(BuildError::NoQueue)));
}
