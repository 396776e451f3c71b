//! A task whose hook is owed is spared, but not for ever.

use std::time::Duration;

use windlass::Router;
use windlass::handler::DeadLetter;
use windlass::server::Event;

use super::sweeper;
use crate::support::{HOUR, Seen, Stage, puppet, seen, task};

/// Archived tasks: each died `age` ms ago, and owes its hook if it is to.
async fn archived(stage: &Stage, tasks: &[(&str, u64, bool)]) {
    let client = stage.client().await;
    let inspector = stage.inspector().await;
    let now = stage.now().await;
    for (id, age, owes) in tasks {
        client.enqueue(task("x")).id(*id).delay(HOUR).await.unwrap();
        inspector.archive("default", id).await.unwrap();
        let died = now - age;
        stage.place("archived", id, died).await;
        if *owes {
            let later = now + 3_600_000;
            stage.place("hooks", id, later).await;
        }
    }
}

const MINUTE: u64 = 60_000;

/// A router with a hook that is not to run.
fn hooked() -> Router {
    puppet().0.on_dead_letter("kind", async |_: DeadLetter| {
        Err::<(), _>("none of them is to run")
    })
}

#[tokio::test]
async fn a_task_whose_hook_is_owed_is_spared() {
    let stage = Stage::new("spared").await;
    let tasks = [
        ("a", 50 * MINUTE, true),
        ("b", 40 * MINUTE, false),
        ("c", 30 * MINUTE, true),
        ("d", 20 * MINUTE, false),
        ("e", 10 * MINUTE, false),
    ];
    archived(&stage, &tasks).await;
    let server = sweeper(&stage, 2, HOUR * 24, hooked()).await;
    stage.wait_for_total("swept_archived", 1).await;
    assert_eq!(stage.ids("archived").await, ["a", "c", "d", "e"]);
    assert_eq!(stage.total("hooks_dropped").await, 0);
    stage.audit().await;

    // Once they are done they are like all others.
    stage.remove("hooks").await;
    stage.wait_for_total("swept_archived", 3).await;
    assert_eq!(stage.ids("archived").await, ["d", "e"]);
    server.stop().await;
    stage.audit().await;
}

#[tokio::test]
async fn after_its_time_it_leaves_with_its_hook_which_is_counted_and_told() {
    let stage = Stage::new("dropped").await;
    let tasks = [
        ("a", 61 * MINUTE, true),
        ("b", 59 * MINUTE, true),
        ("c", 61 * MINUTE, false),
    ];
    archived(&stage, &tasks).await;
    let (told, mut dropped) = dropped_hooks();
    let settings = stage.server().archive_limits(0, HOUR * 24).on_event(told);
    let server = stage
        .serve_with(settings.keep_for_hooks(HOUR), hooked())
        .await;
    stage.wait_for_total("swept_archived", 2).await;
    assert_eq!(stage.ids("archived").await, ["b"]);
    assert_eq!(stage.ids("hooks").await, ["b"]);
    assert_eq!(stage.total("hooks_dropped").await, 1);
    assert_eq!(dropped.next().await, "a kind default");
    assert_eq!(server.stop().await.stats.hooks_dropped, 1);
    assert_eq!(dropped.so_far(), [] as [String; 0]);
    stage.audit().await;
}

#[tokio::test]
async fn one_whose_hook_no_server_has_is_like_all_others_and_runs_it_if_one_comes() {
    let stage = Stage::new("no-server").await;
    let tasks = [
        ("a", 3 * MINUTE, true),
        ("b", 2 * MINUTE, true),
        ("c", MINUTE, false),
    ];
    archived(&stage, &tasks).await;
    let (told, mut dropped) = dropped_hooks();
    let settings = stage.server().archive_limits(2, HOUR * 24).on_event(told);
    let server = stage.serve_with(settings, puppet().0).await;
    assert_eq!(dropped.next().await, "a kind default");
    assert_eq!(stage.ids("archived").await, ["b", "c"]);
    assert_eq!(stage.ids("hooks").await, ["b"]);
    server.stop().await;

    stage.place("hooks", "b", 1).await;
    let (runs, mut ran) = seen();
    let router = puppet()
        .0
        .on_dead_letter("kind", move |letter: DeadLetter| {
            let told = runs.send(letter.id);
            async move { told.map_err(|error| error.to_string()) }
        });
    let server = stage.serve(router).await;
    assert_eq!(ran.next().await, "b");
    server.stop().await;
    stage.audit().await;
}

/// An observer, and what it is told of hooks that will not run.
fn dropped_hooks() -> (impl Fn(&Event) + Send + Sync + 'static, Seen<String>) {
    let (tell, told) = seen();
    let observer = move |event: &Event| {
        if let Event::HookDropped { task, .. } = event {
            let _ = tell.send(format!("{} {} {}", task.id, task.kind, task.queue));
        }
    };
    (observer, told)
}

#[tokio::test]
async fn many_that_are_spared_do_not_hide_what_must_leave() {
    let stage = Stage::new("many").await;
    let client = stage.client().await;
    let tasks = (0..500).map(|n| task("x").id(format!("{n:03}")).delay(HOUR));
    assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    let now = stage.now().await;
    let mut pipeline = redis::pipe();
    for n in 0..500u64 {
        let id = format!("{n:03}");
        pipeline.zadd(stage.key("archived"), &id, now - 600_000 + n);
        // The oldest 250, more than one step looks at, and every tenth after them.
        if n < 250 || n % 10 == 0 {
            pipeline.zadd(stage.key("hooks"), &id, now + 3_600_000);
        }
    }
    pipeline.del(stage.key("scheduled"));
    let _: () = pipeline.query_async(&mut stage.redis()).await.unwrap();
    let server = sweeper(&stage, 100, Duration::from_secs(86_400), hooked()).await;
    // Of the 400 that are too many, 250 and 15 are spared.
    stage.wait_for_total("swept_archived", 135).await;
    assert_eq!(stage.count("archived").await, 365);
    assert_eq!(stage.ids("archived").await.split_off(265).len(), 100);
    server.stop().await;
    stage.audit().await;
}
