//! A process without handlers that looks after queues which other processes fill and nobody serves.

use std::collections::BTreeSet;

use redis::AsyncCommands;
use windlass::handler::DeadLetter;
use windlass::{NewTask, Router};

use crate::fixture::{Settings, Worker, block_on, from_env, print_report};
use crate::support::{HOUR, LIMIT, Stage, child, eventually, ms, task};

const QUEUES: [&str; 2] = ["default", "other"];

/// Reaps all queues until SIGTERM, and writes a line for each dead letter.
#[test]
#[ignore = "runs in a child process of other tests"]
fn reaps() {
    if !child::end_with_parent() {
        return;
    }
    block_on(async {
        let (settings, props) = from_env().await;
        let hooks = Router::new().on_dead_letter("kind", async |letter: DeadLetter| {
            let DeadLetter {
                queue, id, reason, ..
            } = letter;
            println!("letter {queue} {id} {reason}");
            Ok::<_, String>(())
        });
        let settings = settings.builder(&props.stage).all_queues();
        let reaper = settings.build_reaper(hooks).await.unwrap();
        println!("reaps");
        print_report(&[reaper.run().await.unwrap()]);
    });
}

/// Claims from both queues and ends no task.
#[test]
#[ignore = "runs in a child process of other tests"]
fn works() {
    if !child::end_with_parent() {
        return;
    }
    block_on(async {
        let (settings, props) = from_env().await;
        let settings = settings.builder(&props.stage);
        let settings = settings.queues(QUEUES.map(|queue| (queue, 1)));
        let worker = settings.build(props.holding_router()).await.unwrap();
        worker.run().await.unwrap();
    });
}

/// Enqueues to both queues tasks with this id, which differ in nothing else.
async fn enqueue(stage: &Stage, id: &str, change: impl Fn(NewTask) -> NewTask) {
    let client = stage.client().await;
    for queue in QUEUES {
        let enqueued = client.enqueue(change(task("x"))).queue(queue).id(id).await;
        enqueued.unwrap();
    }
}

async fn wait_for(stage: &Stage, set: &str, ids: &[&str]) {
    let ids: BTreeSet<_> = ids.iter().map(|&id| id.to_owned()).collect();
    for queue in QUEUES {
        eventually(&format!("{ids:?} in {queue}'s {set}"), LIMIT, async || {
            let found: BTreeSet<_> = stage.ids_of(queue, set).await.into_iter().collect();
            if found == ids { Ok(()) } else { Err(found) }
        })
        .await;
    }
}

#[tokio::test]
async fn a_process_without_handlers_reaps_two_queues_that_another_fills_and_nobody_serves() {
    let stage = Stage::new("reaper").await;
    let settings = Settings::default();
    let mut reaper = Worker::start_entry("reaper::reaps", &stage, settings);
    reaper.wait_for("reaps", 1).await;

    let mut worker = Worker::start_entry("reaper::works", &stage, settings);
    enqueue(&stage, "lost", |task| task).await;
    enqueue(&stage, "lost-for-ever", |task| task.max_retry(0)).await;
    worker.wait_for("Started", 4).await;
    // The reaper's hooks are known once it has found the queues.
    for queue in QUEUES {
        eventually(&format!("{queue} knows the hook"), LIMIT, async || {
            let meta = stage.key_of(queue, "meta");
            let known: bool = stage.redis().hexists(meta, "hook:kind").await.unwrap();
            known.then_some(())
        })
        .await;
    }
    worker.signal("KILL");
    worker.wait_exit().await;
    let deadline = stage.in_future(ms(500)).await;
    enqueue(&stage, "expires", |task| task.deadline(deadline)).await;
    enqueue(&stage, "comes-due", |task| task.delay(ms(500))).await;
    enqueue(&stage, "waits", |task| task.delay(HOUR)).await;

    let letters = reaper.wait_for("letter", 4).await;
    let letters: BTreeSet<_> = letters.into_iter().collect();
    let expected = QUEUES.map(|queue| {
        [
            format!("{queue} expires deadline_passed"),
            format!("{queue} lost-for-ever lease_expired"),
        ]
    });
    assert_eq!(letters, expected.into_iter().flatten().collect());
    wait_for(&stage, "pending", &["comes-due", "lost"]).await;
    wait_for(&stage, "scheduled", &["waits"]).await;
    wait_for(&stage, "archived", &["expires", "lost-for-ever"]).await;
    wait_for(&stage, "active", &[]).await;
    wait_for(&stage, "hooks", &[]).await;

    reaper.signal("TERM");
    let report = reaper.report().await;
    let counted = ["claimed", "recovered", "archived", "hooks_run"].map(|name| report[name]);
    assert_eq!(counted, [0, 4, 4, 4]);
    stage.audit().await;
}
