//! When a recoverer holds back after an outage: whenever a server that lives may have lost a lease, and
//! never for longer than that.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use redis::AsyncCommands;
use windlass::server::ServerBuilder;
use windlass::{Router, Server};

use crate::fixture::{Act, What};
use crate::support::{LIMIT, RedisServer, Stage, eventually, ms};

const OUTAGES: u64 = 30;
/// What a machine that runs other tests at the same time may add.
const BUSY: Duration = Duration::from_secs(2);

/// Settings that `build()` accepts, and an outage of any length.
#[derive(Debug)]
struct Outage {
    lease: Duration,
    skew: Duration,
    scan: Duration,
    heartbeat: Duration,
    lasts: Duration,
}

impl Outage {
    fn draw(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut between = |least: u64, most: u64| random.random_range(least..=most);
        let (lease, skew) = (between(1_000, 3_000), between(0, 1_500));
        let heartbeat = between(100, lease / 3);
        let scan = between(50, lease + skew - 2 * heartbeat);
        let lasts = between(100, (lease + skew) * 3 / 2);
        Self {
            lease: ms(lease),
            skew: ms(skew),
            scan: ms(scan),
            heartbeat: ms(heartbeat),
            lasts: ms(lasts),
        }
    }

    fn settings(&self, stage: &Stage) -> ServerBuilder {
        Server::builder()
            .redis(stage.config())
            .lease(self.lease)
            .clock_skew(self.skew)
            .scan_interval(self.scan)
            .heartbeat(self.heartbeat)
    }

    /// As documented: a heartbeat, the longest pause between two attempts to connect, and 2 s.
    fn grace(&self) -> Duration {
        self.heartbeat + Duration::from_secs(4)
    }

    /// One server lives through it and one is dead before it; a third one may take over.
    async fn happen(self) {
        let redis = RedisServer::start(&[]);
        let stage = Stage::on(&redis, "drawn").await;
        let serve = |router: Router| stage.serve_with(self.settings(&stage), router);
        let [alive, dead, rescuer] = [stage.props(), stage.props(), stage.props()];
        let lives = serve(alive.holding_router()).await;
        stage.enqueue_many([Act::Wait; 2]).await;
        alive.journal.wait_for(What::Started, 2, LIMIT).await;
        lives.handle.quiet();
        let dies = serve(dead.holding_router()).await;
        let mut lost = stage.enqueue_many([Act::Wait; 2]).await;
        dead.journal.wait_for(What::Started, 2, LIMIT).await;
        let rescues = serve(rescuer.holding_router()).await;
        dies.vanish().await;

        redis.pause();
        // The outage itself: nothing can be waited for.
        tokio::time::sleep(self.lasts).await;
        redis.resume();
        let over = Instant::now();
        let limit = self.lease + self.skew + self.scan + self.grace() + BUSY;
        let taken = rescuer.journal.wait_for(What::Started, 2, LIMIT).await;
        let took = over.elapsed();
        assert!(took < limit, "{took:?} until the rescue: {self:?}");
        let mut rescued: Vec<_> = taken.into_iter().map(|entry| entry.id).collect();
        rescued.sort();
        lost.sort();
        assert_eq!(rescued, lost, "a server that lives was robbed: {self:?}");

        for props in [&alive, &rescuer] {
            props.gate.open();
        }
        stage.wait_until_done(4).await;
        let stats = lives.stop().await.stats;
        let robbed = (stats.leases_lost, stats.settles_refused);
        assert_eq!(robbed, (0, 0), "{self:?}");
        rescues.stop().await;
        assert_eq!(stage.total("recovered").await, 2, "{self:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_settings_an_outage_robs_no_live_server_and_keeps_no_dead_one_s_tasks() {
    let outages = stream::iter(0..OUTAGES).map(|seed| Outage::draw(seed).happen());
    outages.buffer_unordered(10).collect::<Vec<()>>().await;
}

/// What the README says of the defaults.
#[tokio::test]
async fn a_lease_long_over_waits_for_a_grace_where_nobody_has_looked_and_the_readme_says_so() {
    let readme = include_str!("../../README.md");
    assert!(readme.contains("nobody has looked for 23 s"));
    assert!(readme.contains("takes no lease back for another 14 s"));
    for (silence, grace) in [(22, None), (24, Some(14_000))] {
        let stage = Stage::new("nobody-looked").await;
        let dead = stage.props();
        let dies = stage.serve(dead.holding_router()).await;
        let id = stage.enqueue(Act::Wait).await;
        dead.journal.wait_for(What::Started, 1, LIMIT).await;
        dies.vanish().await;
        let mut redis = stage.redis();
        eventually("its heartbeat has ended", LIMIT, async || {
            let servers = format!("{}:servers", stage.prefix);
            (redis.zcard(servers).await == Ok(0)).then_some(())
        })
        .await;
        let now = stage.now().await;
        let pulse = [("pulse", now - silence * 1000), ("grace_until", 0)];
        let (meta, active) = (stage.key("meta"), stage.key("active"));
        let () = redis.hset_multiple(&meta, &pulse).await.unwrap();
        let () = redis.zadd(active, &id, now - 600_000).await.unwrap();

        let defaults = Server::builder().redis(stage.config());
        let server = stage.serve_with(defaults, dead.holding_router()).await;
        match grace {
            None => {
                stage.wait_for_total("recovered", 1).await;
                assert_eq!(stage.meta("grace_until").await, Some(0));
            }
            Some(grace) => {
                let waits = eventually("a grace begins", LIMIT, async || {
                    let times = redis.hmget(&meta, &["pulse", "grace_until"]).await;
                    let (pulse, until): (u64, u64) = times.unwrap();
                    until.checked_sub(pulse)
                });
                assert_eq!(waits.await, grace);
                assert_eq!(stage.state(&id).await, "active");
            }
        }
        server.vanish().await;
    }
}
