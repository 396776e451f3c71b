//! A queue that Redis refuses to work on, next to a sound one of the same server.

use redis::AsyncCommands;
use windlass::NewTask;

use crate::fixture::{Act, InProcess, LIMIT, Settings, Site, What};
use crate::support::eventually;

#[tokio::test]
async fn lost_leases_are_taken_back_also_when_another_queue_cannot_be_looked_at() {
    let site = Site::new("other-schema").await;
    let builder = Settings::default().builder(&site.url, &site.prefix);
    let both = builder.queues([("broken", 1), ("default", 1)]);
    let rescuer = InProcess::start_quiet(both, site.props().router()).await;
    let props = site.props();
    let victim = site.holder(Settings::default(), &props).await;
    site.enqueue_many([Act::Wait; 3]).await;
    props.journal.wait_for(What::Started, 3, LIMIT).await;

    // As a later version of windlass would leave it.
    let meta = format!("{}:{{broken}}:meta", site.prefix);
    let _: () = site.redis.clone().hset(meta, "schema", 2).await.unwrap();
    victim.vanish().await;
    eventually("the leases are taken back", LIMIT, async || {
        let recovered = rescuer.stats().recovered;
        (recovered == 3).then_some(()).ok_or(recovered)
    })
    .await;
    rescuer.stop().await;
}

#[tokio::test]
async fn leases_are_extended_also_when_those_of_other_queues_cannot_be() {
    // So many that the sound one is hardly ever the first to be looked after.
    let broken: Vec<_> = (0..40).map(|n| format!("broken-{n}")).collect();
    let site = Site::new("other-leases").await;
    let rescuer = site.rescuer(Settings::default()).await;
    let props = site.props();
    let roomy = Settings {
        concurrency: 41,
        ..Settings::default()
    };
    let queues = broken.iter().map(String::as_str).chain(["default"]);
    let builder = roomy.builder(&site.url, &site.prefix);
    let builder = builder.queues(queues.map(|name| (name, 1)));
    let holder = InProcess::start(builder, props.holding_router()).await;
    let tasks = broken
        .iter()
        .map(|queue| NewTask::from(Act::Wait).queue(queue));
    site.enqueue_many(tasks).await;
    site.enqueue(Act::Wait).await;
    props.journal.wait_for(What::Started, 41, LIMIT).await;
    for queue in &broken {
        let leases = format!("{}:{{{queue}}}:leases", site.prefix);
        let _: () = site.redis.clone().set(leases, "no hash").await.unwrap();
    }

    // Three leases, one after the other.
    let broken_at = site.expiries().await[0];
    eventually("the lease is extended", LIMIT, async || {
        let expiries = site.expiries().await;
        let extended = expiries
            .first()
            .is_some_and(|now| *now > broken_at + 3_000.0);
        extended.then_some(()).ok_or(expiries)
    })
    .await;
    rescuer.stop().await;
    assert_eq!(site.stat("recovered").await, 0);
    assert_eq!(holder.stats().leases_lost, 0);
    props.gate.open();
    eventually("the task is completed", LIMIT, async || {
        let census = site.census().await;
        (census.completed == 1).then_some(()).ok_or(census)
    })
    .await;
    // It cannot settle the tasks of the broken queues.
    holder.vanish().await;
}
