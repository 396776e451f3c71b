//! A Redis that was away for longer than leases last.

use std::time::{Duration, Instant};

use windlass::server::Stats;

use crate::fixture::{Act, Props, Settings, What};
use crate::support::{LIMIT, RedisServer, Running, Stage, eventually, ms};

/// Longer than lease and clock skew of [`Settings::default`], and than three scans. The tests sleep for
/// it, because nothing can be waited for while Redis, or every server, is away.
const OUTAGE: Duration = Duration::from_millis(2_500);

/// As documented: a heartbeat, the longest pause between two attempts to connect, and 2 s.
fn grace() -> Duration {
    Settings::default().heartbeat() + Duration::from_secs(2) + Duration::from_secs(2)
}

/// One server that runs three tasks, and three idle ones that would take over a lost lease.
struct Scene {
    stage: Stage,
    props: Props,
    busy: Running,
    idle_props: Props,
    idle: Vec<Running>,
}

impl Scene {
    async fn set(redis: &RedisServer, settings: Settings) -> Self {
        let stage = Stage::on(redis, "outage").await;
        let props = stage.props();
        let busy = props.hold(settings).await;
        stage.enqueue_many([Act::Wait; 3]).await;
        props.journal.wait_for(What::Started, 3, LIMIT).await;
        let idle_props = stage.props();
        let mut idle = Vec::new();
        for _ in 0..3 {
            idle.push(idle_props.serve(settings).await);
        }
        assert_eq!(stage.meta("grace_until").await, None, "no outage yet");
        Self {
            stage,
            props,
            busy,
            idle_props,
            idle,
        }
    }

    /// After the outage: waits until leases may be taken again and have been looked at, and checks
    /// that none was taken.
    async fn nothing_was_taken(mut self, redis: &RedisServer) {
        self.stage.reconnect(redis).await;
        eventually(
            "the grace is over and a server has looked",
            LIMIT,
            async || {
                let until = self.stage.meta("grace_until").await;
                let pulse = self.stage.meta("pulse").await;
                match (until, pulse) {
                    (Some(until), Some(pulse)) if pulse > until => Ok(()),
                    times => Err(times),
                }
            },
        )
        .await;
        let stolen = self.idle_props.journal.entries();
        assert!(stolen.is_empty(), "{stolen:?}");
        assert_eq!(self.stage.audit().await.active, 3, "still leased");

        self.props.gate.open();
        self.stage.wait_until_done(3).await;
        assert_eq!(self.stage.total("recovered").await, 0);
        let Stats {
            completed,
            leases_lost,
            settles_refused,
            ..
        } = self.busy.stop().await.stats;
        assert_eq!((completed, leases_lost, settles_refused), (3, 0, 0));
        for server in self.idle {
            assert_eq!(server.stop().await.stats.recovered, 0);
        }
    }
}

#[tokio::test]
async fn a_redis_that_was_frozen_takes_no_lease_from_a_live_server() {
    let redis = RedisServer::start(&[]);
    let scene = Scene::set(&redis, Settings::default()).await;
    redis.pause();
    // The outage itself: nothing can be waited for.
    tokio::time::sleep(OUTAGE).await;
    redis.resume();
    scene.nothing_was_taken(&redis).await;
}

/// A command timeout of 500 ms: every connection is given up and made anew.
#[tokio::test]
async fn a_redis_that_did_not_answer_in_time_takes_no_lease_from_a_live_server() {
    let redis = RedisServer::start(&[]);
    let impatient = Settings {
        command_timeout: ms(500),
        ..Settings::default()
    };
    let scene = Scene::set(&redis, impatient).await;
    redis.pause();
    // The outage itself: nothing can be waited for.
    tokio::time::sleep(OUTAGE).await;
    redis.resume();
    scene.nothing_was_taken(&redis).await;
}

#[tokio::test]
async fn a_redis_that_was_restarted_takes_no_lease_from_a_live_server() {
    let redis = RedisServer::start(&[("appendonly", "yes"), ("appendfsync", "always")]);
    let scene = Scene::set(&redis, Settings::default()).await;
    redis.kill();
    // The outage itself: nothing can be waited for.
    tokio::time::sleep(OUTAGE).await;
    redis.restart();
    scene.nothing_was_taken(&redis).await;
}

#[tokio::test]
async fn a_fresh_server_after_an_outage_takes_nothing_before_the_grace_is_over() {
    let stage = Stage::new("fresh").await;
    let props = stage.props();
    let first = props.hold(Settings::default()).await;
    stage.enqueue_many([Act::Finish; 3]).await;
    props.journal.wait_for(What::Started, 3, LIMIT).await;
    first.vanish().await;
    // Nobody serves for so long that all leases are past their cutoff.
    tokio::time::sleep(OUTAGE).await;

    let fresh_props = stage.props();
    fresh_props.gate.open();
    let started = Instant::now();
    let fresh = fresh_props.serve(Settings::default()).await;
    let again = fresh_props.journal.wait_for(What::Started, 3, LIMIT).await;
    for entry in again {
        let after = entry.at - started;
        assert!(after >= grace(), "{after:?}: within the grace");
        assert!(
            after < grace() + Duration::from_secs(3),
            "{after:?}: too late"
        );
        assert_eq!(entry.attempt, 2);
    }
    stage.wait_until_done(3).await;
    assert_eq!(fresh.stop().await.stats.recovered, 3);
}
