//! A reply that is lost after Redis has done what was asked.

use std::time::Duration;

use windlass::client::{EnqueueError, EnqueueOutcome};
use windlass::error::BrokerError;
use windlass::task::RawTask;
use windlass::{NewTask, Router, TaskContext, TaskError};

use crate::fixture::{LIMIT, Stage};
use crate::seen::seen;
use crate::support::{Mode, Proxy, RedisServer, eventually};

/// A stage whose clients and servers reach the shared Redis through a proxy.
async fn stage(name: &str) -> (Proxy, Stage) {
    let proxy = Proxy::start(RedisServer::shared().port());
    let stage = Stage::new(name).await.behind(proxy.url());
    (proxy, stage)
}

/// Whether a request is a script call that holds all these texts.
fn calls(texts: &[&str]) -> impl FnMut(&[u8]) -> bool + Send + use<> {
    let texts: Vec<String> = texts.iter().map(|text| text.to_string()).collect();
    move |request| {
        let request = String::from_utf8_lossy(request);
        request.contains("EVALSHA") && texts.iter().all(|text| request.contains(text))
    }
}

fn task(id: &str) -> NewTask {
    NewTask::from(RawTask::new("kind", "x")).id(id)
}

#[tokio::test]
async fn an_enqueue_without_a_reply_says_that_its_outcome_is_unknown() {
    let (proxy, stage) = stage("enqueue").await;
    let client = stage.client().await;
    client.enqueue(task("warm")).await.unwrap();
    proxy.drop_replies_once(calls(&["lost"]));
    let error = client.enqueue(task("lost")).await.unwrap_err();
    let EnqueueError::OutcomeUnknown { id, source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(id, "lost");
    assert!(
        matches!(*source, BrokerError::Disconnected(_)),
        "{source:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains("task lost") && text.contains("is unknown"),
        "{text}"
    );
    assert!(text.contains("again with the same id"), "{text}");
    assert_eq!(proxy.dropped(), 1);

    let again = client.enqueue(task("lost")).await.unwrap();
    assert_eq!(again.outcome, EnqueueOutcome::Exists);
    assert_eq!(stage.ids("pending").await, ["warm", "lost"]);
    stage.audit().await;
}

#[tokio::test]
async fn an_enqueue_that_redis_did_not_get_is_new_when_repeated() {
    let (proxy, stage) = stage("not-sent").await;
    let client = stage.client().await;
    client.enqueue(task("warm")).await.unwrap();
    proxy.drop_requests_once(calls(&["lost"]));
    let error = client.enqueue(task("lost")).await.unwrap_err();
    assert!(
        matches!(error, EnqueueError::OutcomeUnknown { .. }),
        "{error:?}"
    );
    assert!(client.enqueue(task("lost")).await.unwrap().is_new());
}

#[tokio::test]
async fn of_many_tasks_only_those_on_their_way_are_unknown() {
    let (proxy, stage) = stage("many").await;
    let client = stage.client().await;
    client.enqueue(task("warm")).await.unwrap();
    // The second of three calls.
    proxy.drop_replies_once(calls(&["task 0600"]));
    let tasks = || (0..1_234).map(|i| task(&format!("task {i:04}")));
    let results = client.enqueue_many(tasks()).await;
    for (i, result) in results.iter().enumerate() {
        match (i, result) {
            (0..500, Ok(enqueued)) => assert!(enqueued.is_new()),
            (500..1_000, Err(EnqueueError::OutcomeUnknown { id, .. })) => {
                assert_eq!(*id, format!("task {i:04}"));
            }
            (1_000.., Err(EnqueueError::Refused(_))) => {}
            _ => panic!("{i}: {result:?}"),
        }
    }
    let again = client.enqueue_many(tasks()).await;
    let new = again
        .iter()
        .filter(|result| result.as_ref().unwrap().is_new());
    assert_eq!(new.count(), 234);
    assert_eq!(stage.count("pending").await, 1_235);
    stage.audit().await;
}

#[tokio::test]
async fn tasks_of_a_claim_without_a_reply_are_handed_back_at_once() {
    let (proxy, stage) = stage("claim").await;
    let client = stage.client().await;
    let many = client
        .enqueue_many((0..20).map(|i| task(&i.to_string()).max_retry(0)))
        .await;
    assert!(many.iter().all(Result::is_ok));
    let (says, mut runs) = seen();
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let said = says.send(context.id().to_owned());
        async move { said.map_err(|error| error.to_string()) }
    });
    let settings = stage.server().lease(10 * LIMIT).concurrency(8);
    let server = settings.build(router).await.unwrap();
    // Nothing else that it sends has the most bytes that a claim may answer.
    proxy.drop_replies_once(calls(&[server.handle().id(), "\r\n1048576\r\n"]));
    let server = crate::fixture::Running::start(server);
    let mut ran = runs.take(20).await;
    ran.sort_unstable_by_key(|id| id.parse::<u32>().unwrap());
    assert_eq!(ran, (0..20).map(|i| i.to_string()).collect::<Vec<_>>());
    assert_eq!(proxy.dropped(), 1);
    stage.wait_until_drained("default", LIMIT).await;
    stage.audit().await;
    let stats = server.stop().await.stats;
    assert_eq!((stats.completed, stats.recovered), (20, 0));
    assert_eq!(stage.count("archived").await, 0);
    assert!(runs.so_far().is_empty(), "nothing ran twice");
}

#[tokio::test]
async fn tasks_that_run_keep_their_leases_when_all_connections_are_cut() {
    let (proxy, stage) = stage("kept").await;
    let client = stage.client().await;
    let (says, mut runs) = seen();
    let (release, released) = tokio::sync::watch::channel(false);
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let said = says.send(context.id().to_owned());
        let mut released = released.clone();
        async move {
            said.map_err(|error| error.to_string())?;
            let go_on = released.wait_for(|go_on| *go_on).await;
            go_on.map(drop).map_err(|error| error.to_string())
        }
    });
    let settings = stage.server().queues([("a", 1), ("b", 1)]);
    let server = stage.serve_with(settings.lease(10 * LIMIT), router).await;
    // Ids name a task within its queue only.
    for (queue, id) in [("a", "0"), ("a", "1"), ("b", "0"), ("b", "1")] {
        client.enqueue(task(id)).queue(queue).await.unwrap();
    }
    runs.take(4).await;
    for probe in ["first", "second", "third"] {
        proxy.reset_all();
        eventually("an enqueue gets through", LIMIT, async || {
            let enqueue = client.enqueue(task(probe)).queue("a");
            enqueue.await.ok()
        })
        .await;
        assert_eq!(runs.next().await, probe);
    }
    release.send(true).unwrap();
    stage.wait_until_drained("a", LIMIT).await;
    stage.wait_until_drained("b", LIMIT).await;
    let stats = server.stop().await.stats;
    assert_eq!(
        (stats.completed, stats.leases_lost, stats.settles_refused),
        (7, 0, 0)
    );
    assert!(runs.so_far().is_empty(), "nothing ran twice");
}

#[tokio::test]
async fn what_redis_refuses_to_settle_is_left_to_its_lease_when_all_connections_are_cut() {
    let redis = RedisServer::start(&[]);
    let proxy = Proxy::start(redis.port());
    let stage = Stage::on(&redis, "left").await.behind(proxy.url());
    let client = stage.client().await;
    let (says, mut runs) = seen();
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let said = says.send(context.id().to_owned());
        async move { said.map_err(|error| error.to_string()) }
    });
    let settings = stage.server().lease(10 * LIMIT);
    let server = stage.serve_with(settings, router).await;
    let mut acl = redis::cmd("ACL");
    acl.arg(&["SETUSER", "default", "-unlink"]);
    let _: () = acl.query_async(&mut stage.redis()).await.unwrap();
    client.enqueue(task("refused")).await.unwrap();
    assert_eq!(runs.next().await, "refused");
    eventually("its settlement is given up", LIMIT, async || {
        let refused = server.handle.stats().settles_refused;
        if refused == 1 { Ok(()) } else { Err(refused) }
    })
    .await;
    for probe in ["first", "second", "third"] {
        proxy.reset_all();
        eventually("an enqueue gets through", LIMIT, async || {
            client.enqueue(task(probe)).await.ok()
        })
        .await;
        assert_eq!(runs.next().await, probe);
    }
    server.stop().await;
    assert!(runs.so_far().is_empty(), "nothing ran twice");
}

#[tokio::test]
async fn callers_that_give_up_early_do_not_keep_a_dead_connection() {
    let (proxy, stage) = stage("impatient").await;
    let client = stage.client().await;
    client.enqueue(task("warm")).await.unwrap();
    for connection in proxy.open() {
        proxy.set_mode_of(connection.id, Mode::BlackHole);
    }
    eventually("an enqueue gets through", LIMIT, async || {
        let enqueue = client.enqueue(RawTask::new("kind", "x")).send();
        let enqueue = tokio::time::timeout(Duration::from_millis(300), enqueue);
        enqueue.await.ok()?.ok()
    })
    .await;
}

/// A handler that ends as its task's id says.
async fn end_as_asked(_: RawTask, context: TaskContext) -> Result<(), TaskError> {
    let long = Duration::from_secs(600);
    match context.id() {
        "gone" => Ok(()),
        "archived" => Err(TaskError::skip_retry("never")),
        "retry" => Err(TaskError::retry_after("later", long)),
        "scheduled" => Err(TaskError::snooze(long)),
        _ => {
            context.cancelled().await;
            Err(TaskError::retry_after("handed back", Duration::ZERO))
        }
    }
}

#[tokio::test]
async fn a_settle_without_a_reply_is_done_and_counted_once() {
    for id in ["gone", "archived", "retry", "scheduled"] {
        let (proxy, stage) = stage("settle").await;
        let router = Router::new().raw("kind", end_as_asked);
        // No heartbeat meanwhile: a renewal also names task and holder.
        let settings = stage.server().heartbeat(Duration::from_secs(10));
        let server = stage.serve_with(settings, router).await;
        let holder = format!("@{}\r\n", server.handle.id());
        proxy.drop_replies_once(calls(&[&format!("\r\n{id}\r\n"), &holder]));
        stage.client().await.enqueue(task(id)).await.unwrap();
        eventually("the settle is sent again and answered", LIMIT, async || {
            let settled = server.handle.running() == 0 && proxy.dropped() == 1;
            settled.then_some(())
        })
        .await;
        assert_eq!(stage.state(id).await, id);
        stage.audit().await;
        let stats = server.stop().await.stats;
        let ended = (
            stats.completed,
            stats.archived,
            stats.retried,
            stats.deferred,
        );
        let once = |other: &str| u64::from(id == other);
        assert_eq!(
            ended,
            (
                once("gone"),
                once("archived"),
                once("retry"),
                once("scheduled")
            )
        );
        assert_eq!((stats.settles_refused, stats.leases_lost), (0, 0), "{id}");
        let totals = stage.totals().await;
        let total = |name: &str| totals.get(name).copied().unwrap_or(0);
        assert_eq!(
            total("processed") + total("deferred"),
            1,
            "{id}: {totals:?}"
        );
        assert_eq!(total("stale"), 0, "{id}: {totals:?}");
    }
}

#[tokio::test]
async fn a_claim_that_redis_gets_late_leases_nothing() {
    let (proxy, stage) = stage("late-claim").await;
    let direct = Stage::at(
        RedisServer::shared().url(),
        stage.prefix.clone(),
        stage.redis(),
    );
    let (says, mut runs) = seen();
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let said = says.send(context.id().to_owned());
        async move { said.map_err(|error| error.to_string()) }
    });
    let settings = stage.server().lease(Duration::from_secs(1));
    let server = stage.serve_with(settings, router).await;
    direct.enqueue(task("before")).await;
    runs.next().await;
    stage.wait_until_drained("default", LIMIT).await;

    // What it sends now waits on its way until long after it has given up.
    proxy.set_mode(Mode::Hold);
    direct.enqueue(task("late").max_retry(0)).await;
    eventually("the claimer has given up", LIMIT, async || {
        let problems = server.handle.health().problems;
        let given_up =
            |problem: &windlass::server::HealthProblem| problem.to_string().contains("claimer");
        if problems.iter().any(given_up) {
            Ok(())
        } else {
            Err(problems)
        }
    })
    .await;
    proxy.set_mode(Mode::Pass);
    assert_eq!(runs.next().await, "late");
    stage.wait_until_drained("default", LIMIT).await;
    assert_eq!(stage.count("archived").await, 0);
    assert_eq!(server.stop().await.stats.recovered, 0);
}

#[tokio::test]
async fn a_task_that_never_arrives_holds_up_nothing_behind_it() {
    let (proxy, stage) = stage("never-arrives").await;
    let client = stage.client().await;
    for id in ["1 never", "2 behind"] {
        client.enqueue(task(id)).await.unwrap();
    }
    let (says, mut runs) = seen();
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let said = says.send(context.id().to_owned());
        async move { said.map_err(|error| error.to_string()) }
    });
    let settings = stage.server().lease(10 * LIMIT).concurrency(8);
    let server = settings.build(router).await.unwrap();
    let id = server.handle().id().to_owned();
    let claim = [&*id, "\r\n1048576\r\n"];
    proxy.drop_replies_once(calls(&claim));
    let server = crate::fixture::Running::start(server);
    // Once with what is behind it, and then alone: three times it is handed back.
    for lost in 1..=5 {
        eventually("a reply is lost", LIMIT, async || {
            (proxy.dropped() == lost).then_some(())
        })
        .await;
        if lost < 5 {
            proxy.drop_replies_once(calls(&claim));
        }
    }
    assert_eq!(runs.next().await, "2 behind");
    assert!(stage.ids("active").await.contains(&"1 never".to_owned()));
    assert!(runs.so_far().is_empty());
    server.stop().await;
}
