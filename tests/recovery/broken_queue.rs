//! A queue that Redis refuses to work on, next to a sound one of the same server.

use std::sync::Arc;

use redis::AsyncCommands;
use tokio::sync::Semaphore;
use windlass::task::RawTask;
use windlass::{NewTask, Router, State, TaskContext};

use crate::fixture::{Act, Journal, Settings, What};
use crate::support::{LIMIT, Running, Stage, eventually};

#[tokio::test]
async fn lost_leases_are_taken_back_also_when_another_queue_cannot_be_looked_at() {
    let stage = Stage::new("other-schema").await;
    let builder = Settings::default().builder(&stage);
    let both = builder.queues([("broken", 1), ("default", 1)]);
    let rescuer = Running::start_quiet(both, stage.props().router()).await;
    let props = stage.props();
    let victim = props.hold(Settings::default()).await;
    stage.enqueue_many([Act::Wait; 3]).await;
    props.journal.wait_for(What::Started, 3, LIMIT).await;

    // As a later version of windlass would leave it.
    let meta = format!("{}:{{broken}}:meta", stage.prefix);
    let _: () = stage.redis().hset(meta, "schema", 2).await.unwrap();
    victim.vanish().await;
    eventually("the leases are taken back", LIMIT, async || {
        let recovered = rescuer.handle.stats().recovered;
        (recovered == 3).then_some(()).ok_or(recovered)
    })
    .await;
    rescuer.stop().await;
}

#[tokio::test]
async fn leases_are_extended_also_when_those_of_other_queues_cannot_be() {
    // So many that the sound one is hardly ever the first to be looked after.
    let broken: Vec<_> = (0..40).map(|n| format!("broken-{n}")).collect();
    let stage = Stage::new("other-leases").await;
    let rescuer = stage.rescuer(Settings::default()).await;
    let props = stage.props();
    let roomy = Settings {
        concurrency: 41,
        ..Settings::default()
    };
    let queues = broken.iter().map(String::as_str).chain(["default"]);
    let builder = roomy.builder(&stage);
    let builder = builder.queues(queues.map(|name| (name, 1)));
    let holder = stage.serve_with(builder, props.holding_router()).await;
    let tasks = broken
        .iter()
        .map(|queue| NewTask::from(Act::Wait).queue(queue));
    stage.enqueue_many(tasks).await;
    stage.enqueue(Act::Wait).await;
    props.journal.wait_for(What::Started, 41, LIMIT).await;
    for queue in &broken {
        let leases = format!("{}:{{{queue}}}:leases", stage.prefix);
        let _: () = stage.redis().set(leases, "no hash").await.unwrap();
    }

    // Three leases, one after the other.
    let broken_at = stage.expiries().await[0];
    eventually("the lease is extended", LIMIT, async || {
        let expiries = stage.expiries().await;
        let extended = expiries
            .first()
            .is_some_and(|now| *now > broken_at + 3_000.0);
        extended.then_some(()).ok_or(expiries)
    })
    .await;
    rescuer.stop().await;
    assert_eq!(stage.total("recovered").await, 0);
    assert_eq!(holder.handle.stats().leases_lost, 0);
    props.gate.open();
    eventually("the task is completed", LIMIT, async || {
        let census = stage.audit().await;
        (census.succeeded == 1).then_some(()).ok_or(census)
    })
    .await;
    // It cannot settle the tasks of the broken queues.
    holder.vanish().await;
}

/// How often a settlement is refused before it is given up takes longer than another queue's task from
/// its enqueue to its completion; a machine that is busy may turn a round the other way.
#[tokio::test]
async fn what_ends_in_one_queue_is_settled_while_that_of_another_is_refused() {
    const ROUNDS: usize = 8;
    type Props = (Journal, Arc<Semaphore>);
    async fn wait_when_broken(
        _: RawTask,
        State((journal, may_end)): State<Props>,
        context: TaskContext,
    ) -> Result<(), String> {
        journal.note(What::Started, &context);
        if context.queue() == "broken" {
            may_end.acquire().await.unwrap().forget();
            journal.note(What::Ended, &context);
        }
        Ok(())
    }
    let stage = Stage::new("other-settles").await;
    let props: Props = (Journal::default(), Arc::new(Semaphore::new(0)));
    let (journal, may_end) = props.clone();
    let builder = Settings {
        concurrency: ROUNDS + 1,
        ..Settings::default()
    }
    .builder(&stage)
    .queues([("broken", 1), ("default", 1)]);
    let router = Router::new().fallback(wait_when_broken).state(props);
    let server = stage.serve_with(builder, router).await;
    let broken = |_| NewTask::from(Act::Wait).queue("broken");
    stage.enqueue_many((0..ROUNDS).map(broken)).await;
    journal.wait_for(What::Started, ROUNDS, LIMIT).await;
    let leases = format!("{}:{{broken}}:leases", stage.prefix);
    let _: () = stage.redis().set(leases, "no hash").await.unwrap();

    let mut meanwhile = 0;
    for round in 1..=ROUNDS as u64 {
        may_end.add_permits(1);
        journal.wait_for(What::Ended, round as usize, LIMIT).await;
        stage.enqueue(Act::Sleep(0)).await;
        eventually("the other queue's task is completed", LIMIT, async || {
            (server.handle.stats().completed == round).then_some(())
        })
        .await;
        meanwhile += usize::from(server.handle.stats().settles_refused < round);
        eventually("the settlement is given up", LIMIT, async || {
            (server.handle.stats().settles_refused == round).then_some(())
        })
        .await;
    }
    assert!(meanwhile > ROUNDS / 2, "{meanwhile} of {ROUNDS}");
    let report = server.stop().await;
    assert_eq!(report.unsettled, 0, "{report:?}");
}
