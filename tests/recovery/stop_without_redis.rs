//! A server that is asked to stop while Redis is away ends within its graces and 4 s.

use std::time::{Duration, Instant};

use windlass::NewTask;
use windlass::server::Report;

use crate::fixture::{Act, Block, Settings, What};
use crate::support::{LIMIT, RedisServer, Stage, ms};

/// As documented, and one more for a machine that is busy.
const BEYOND_THE_GRACES: Duration = Duration::from_secs(4 + 1);

/// By then, every part of a server waits for an answer of Redis: a wait for work lasts up to 2 s.
const OUTAGE: Duration = Duration::from_millis(2_500);

fn settings() -> Settings {
    Settings {
        shutdown_grace: ms(300),
        cancel_grace: ms(200),
        // What is on its way when Redis freezes is not waited for.
        command_timeout: Duration::from_secs(25),
        ..Settings::default()
    }
}

/// Stops a server that has started `tasks`, some time after Redis went away, when `ended` of their
/// handlers have ended.
async fn stops_in_time(away: fn(&RedisServer), tasks: Vec<NewTask>, ended: usize) -> Report {
    let redis = RedisServer::start(&[]);
    let stage = Stage::on(&redis, "no-redis").await;
    let props = stage.props();
    let server = props.serve(settings()).await;
    stage.enqueue(Act::Sleep(0)).await;
    stage.wait_until_done(1).await;
    let started = tasks.len();
    stage.enqueue_many(tasks).await;
    let journal = &props.journal;
    journal.wait_for(What::Started, 1 + started, LIMIT).await;
    away(&redis);
    // The outage itself: nothing can be waited for.
    tokio::time::sleep(OUTAGE).await;
    journal.wait_for(What::Ended, 1 + ended, LIMIT).await;

    let asked = Instant::now();
    let report = server.stop().await;
    let took = asked.elapsed();
    let graces = settings().shutdown_grace + settings().cancel_grace;
    assert!(took < graces + BEYOND_THE_GRACES, "{took:?}");
    props.gate.open();
    report
}

/// Whether Redis has gone or answers no more.
async fn either_way(tasks: impl Fn() -> Vec<NewTask>, ended: usize) -> [Report; 2] {
    let gone = stops_in_time(RedisServer::kill, tasks(), ended);
    let frozen = stops_in_time(RedisServer::pause, tasks(), ended);
    tokio::join!(gone, frozen).into()
}

#[tokio::test]
async fn without_anything_to_do() {
    for report in either_way(Vec::new, 0).await {
        assert_eq!((report.unsettled, report.still_running.len()), (0, 0));
    }
}

#[tokio::test]
async fn with_handlers_that_it_cancels_and_cannot_hand_back() {
    let tasks = || {
        let acts = [Act::Wait, Act::Finish, Act::Sleep(60_000)];
        let acts = acts.into_iter().map(NewTask::from);
        acts.chain([Block.into()]).collect()
    };
    for report in either_way(tasks, 0).await {
        assert_eq!((report.unsettled, report.still_running.len()), (3, 1));
    }
}

#[tokio::test]
async fn with_ends_of_which_it_could_not_tell() {
    let tasks = || vec![Act::Sleep(1_500).into(), Act::Sleep(1_500).into()];
    for report in either_way(tasks, 2).await {
        assert_eq!((report.unsettled, report.still_running.len()), (2, 0));
    }
}
