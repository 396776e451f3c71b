//! When a recoverer holds back after an outage: whenever a server that lives may have lost a lease, and
//! never for longer than that.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use windlass::server::ServerBuilder;
use windlass::{Router, Server};

use crate::fixture::{Act, What};
use crate::support::{LIMIT, RedisServer, Stage, ms};

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
