//! Servers that are killed at random, over and over, lose no hook.

use std::collections::HashMap;
use std::time::Duration;

use redis::AsyncCommands;
use windlass::handler::DeadLetter;
use windlass::task::RawTask;
use windlass::{Router, TaskError};

use crate::support::child::ChildProcess;
use crate::support::{LIMIT, Stage, eventually, ms, task};

const TASKS: usize = 500;
const KILLS: usize = 8;

/// Its tasks die at once; its hooks write themselves down and take a while.
fn router(stage: &Stage) -> Router {
    let (redis, ran) = (stage.redis(), stage.key("ran"));
    Router::new()
        .raw("kind", async |_: RawTask| {
            Err::<(), _>(TaskError::skip_retry("dead"))
        })
        .on_dead_letter("kind", move |letter: DeadLetter| {
            let (mut redis, ran) = (redis.clone(), ran.clone());
            async move {
                let _: () = redis.rpush(ran, letter.id).await?;
                // Its work.
                tokio::time::sleep(ms(50)).await;
                Ok::<_, redis::RedisError>(())
            }
        })
}

fn settings(stage: &Stage) -> windlass::server::ServerBuilder {
    let settings = stage.server().lease(ms(1000)).heartbeat(ms(300));
    settings
        .scan_interval(ms(300))
        .retry_delay(|_| Duration::ZERO)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in a child process of other tests"]
async fn worker() {
    if let Some(stage) = Stage::of_parent().await {
        stage.serve_for_ever(settings(&stage), router(&stage)).await;
    }
}

async fn spawn(stage: &Stage) -> ChildProcess {
    let mut worker = stage.child("hook_storm::worker");
    worker.wait_for_line("ready", LIMIT).await;
    worker
}

#[tokio::test]
async fn hooks_survive_servers_that_are_killed_at_random() {
    let stage = Stage::new("storm").await;
    let client = stage.client().await;
    let mut workers = vec![
        spawn(&stage).await,
        spawn(&stage).await,
        spawn(&stage).await,
    ];
    let mut kills = 0;
    for round in 0..KILLS {
        let first = round * TASKS / KILLS;
        let last = (round + 1) * TASKS / KILLS;
        let tasks = (first..last).map(|n| task("x").id(n.to_string()));
        assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
        // In the middle of its hooks, at a moment that nobody chose.
        let before: usize = stage.redis().llen(stage.key("ran")).await.unwrap();
        eventually("some hooks run", LIMIT, async || {
            let ran: usize = stage.redis().llen(stage.key("ran")).await.unwrap();
            (ran > before + 5).then_some(())
        })
        .await;
        let one = workers.remove(round % 3);
        one.signal("KILL");
        drop(one);
        kills += 1;
        workers.push(spawn(&stage).await);
    }
    let drained = async || {
        let archived = stage.count("archived").await;
        if archived == TASKS {
            Ok(())
        } else {
            Err(archived)
        }
    };
    eventually("all tasks are dead", 2 * LIMIT, drained).await;

    // With the last ones killed, whatever is held is held by nobody.
    for worker in workers {
        worker.signal("KILL");
        kills += 1;
    }
    let now = stage.now().await;
    for id in stage.ids("hooks").await {
        stage.place("hooks", &id, now).await;
    }
    let server = stage.serve_with(settings(&stage), router(&stage)).await;
    stage.wait_for_count("hooks", 0).await;
    server.stop().await;

    let ran: Vec<String> = stage.redis().lrange(stage.key("ran"), 0, -1).await.unwrap();
    let mut times: HashMap<&str, usize> = HashMap::new();
    for id in &ran {
        *times.entry(id).or_default() += 1;
    }
    let again = ran.len() - times.len();
    println!("{TASKS} hooks, {kills} kills: {again} ran once more");
    assert_eq!(times.len(), TASKS, "every hook has run");
    assert!(
        again <= 8 * kills,
        "{again} ran more than once in {kills} kills"
    );
    stage.audit().await;
}
