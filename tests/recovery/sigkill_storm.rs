//! Workers that are killed at random moments while they work.

use std::time::{Duration, Instant};

use crate::fixture::{Act, ENTRY, Settings, Worker};
use crate::support::{LIMIT, Stage, eventually, ms};

const STORM: Duration = Duration::from_secs(12);

/// A task may lose any number of leases in a row here; its next try comes after 100 ms.
fn settings() -> Settings {
    Settings {
        max_lost: u32::MAX,
        concurrency: 20,
        ..Settings::default()
    }
}

/// Starts a worker, lets it work for a random time, and kills it; again and again.
async fn kill_again_and_again(stage: &Stage, end: Instant) -> u32 {
    let mut kills = 0;
    while Instant::now() < end {
        let worker = Worker::start_entry(ENTRY, stage, settings());
        // Not a wait for anything: the moment is meant to be random, also before it serves.
        tokio::time::sleep(ms(rand::random_range(20..600))).await;
        worker.signal("KILL");
        kills += 1;
    }
    kills
}

async fn enqueue_until(stage: &Stage, end: Instant) -> Vec<String> {
    let mut ids = Vec::new();
    while Instant::now() < end {
        let tasks = (0..20).map(|_| Act::Mark(rand::random_range(0..40)));
        let tasks = tasks.map(|act| windlass::NewTask::from(act).max_retry(1_000));
        ids.extend(stage.enqueue_many(tasks).await);
        // A pace.
        tokio::time::sleep(ms(50)).await;
    }
    ids
}

/// At every moment each task stands in exactly one state, and none is missing.
async fn look_until(stage: &Stage, end: Instant) -> u32 {
    let mut looks = 0;
    while Instant::now() < end {
        let census = stage.audit().await;
        assert_eq!(
            census.in_all_states(),
            census.enqueued - census.succeeded,
            "{census:?}"
        );
        looks += 1;
        // A pace.
        tokio::time::sleep(ms(50)).await;
    }
    looks
}

#[tokio::test]
async fn nothing_is_lost_when_workers_are_killed_at_random_moments() {
    let stage = Stage::new("sigkill").await;
    // So that lost leases are taken back all the time, also while no worker lives.
    let rescuer = stage.rescuer(settings()).await;
    let end = Instant::now() + STORM;
    let (ids, first, second, third, looks) = tokio::join!(
        enqueue_until(&stage, end),
        kill_again_and_again(&stage, end),
        kill_again_and_again(&stage, end),
        kill_again_and_again(&stage, end),
        look_until(&stage, end),
    );
    let kills = first + second + third;
    let before = stage.audit().await;
    let survivor = stage.props().serve(settings()).await;
    eventually("all tasks are done", LIMIT, async || {
        let census = stage.audit().await;
        (census.in_all_states() == 0).then_some(()).ok_or(census)
    })
    .await;

    let census = stage.audit().await;
    assert_eq!(census.enqueued, ids.len() as u64);
    assert_eq!(census.succeeded, ids.len() as u64, "none was given up");
    let marks = stage.marks().await;
    let never_ran: Vec<_> = ids.iter().filter(|id| !marks.contains_key(*id)).collect();
    assert!(never_ran.is_empty(), "{never_ran:?}");
    let recovered = stage.total("recovered").await;
    println!(
        "{kills} kills, {} tasks, {recovered} lost leases taken back, {looks} looks; left at the end of the storm: {before:?}",
        ids.len()
    );
    assert!(
        kills >= 20 && recovered > 0 && looks >= 20,
        "too few to tell anything"
    );
    survivor.stop().await;
    rescuer.stop().await;
}
