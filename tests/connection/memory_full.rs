//! Redis has reached its `maxmemory` and may not evict.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::AsyncCommands;
use windlass::client::EnqueueError;
use windlass::error::BrokerError;
use windlass::server::{Event, HealthProblem};
use windlass::task::RawTask;
use windlass::{NewTask, Router, TaskContext, TaskError};

use crate::fixture::{LIMIT, Stage};
use crate::support::{RedisServer, eventually};

async fn set_memory(stage: &Stage, limit: &str) {
    let mut set = redis::cmd("CONFIG");
    set.arg(&["SET", "maxmemory", limit]);
    let () = set.query_async(&mut stage.redis()).await.unwrap();
}

#[track_caller]
fn assert_out_of_memory(error: EnqueueError) {
    let EnqueueError::Refused(source) = &error else {
        panic!("{error:?}");
    };
    assert!(
        matches!(*source, BrokerError::OutOfMemory { .. }),
        "{error:?}"
    );
    let text = source.to_string();
    assert!(text.contains("let workers drain it"), "{text}");
}

#[tokio::test]
async fn an_enqueue_fails_cleanly_and_writes_nothing() {
    let redis = RedisServer::start(&[("maxmemory-policy", "noeviction")]);
    let stage = Stage::on(&redis, "enqueue").await;
    let client = stage.client().await;
    client
        .enqueue(RawTask::new("kind", "x"))
        .id("there")
        .await
        .unwrap();
    set_memory(&stage, "1").await;
    let before = stage.dumps("*").await;
    let task = || NewTask::from(RawTask::new("kind", "x"));
    let second = Duration::from_secs(1);
    for form in [
        task(),
        task().queue("new"),
        task().delay(second),
        task().id("mine"),
    ] {
        assert_out_of_memory(client.enqueue(form).await.unwrap_err());
    }
    for result in client.enqueue_many([task(), task().queue("new")]).await {
        assert_out_of_memory(result.unwrap_err());
    }
    assert!(stage.dumps("*").await == before, "something was written");
    set_memory(&stage, "0").await;
    assert!(client.enqueue(task().id("mine")).await.unwrap().is_new());
    assert!(client.enqueue(task().queue("new")).await.unwrap().is_new());
    stage.audit().await;
}

#[tokio::test]
async fn servers_drain_a_full_redis_and_can_be_seen() {
    const EACH: usize = 100;
    let redis = RedisServer::start(&[("maxmemory-policy", "noeviction")]);
    let stage = Stage::on(&redis, "drain").await;
    let client = stage.client().await;
    for kind in ["works", "fails", "snoozes", "recovers"] {
        let tasks = (0..EACH).map(|_| NewTask::from(RawTask::new(kind, vec![b'x'; 1_000])));
        assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    }
    let due =
        (0..EACH).map(|_| NewTask::from(RawTask::new("works", "x")).delay(Duration::from_secs(1)));
    assert!(client.enqueue_many(due).await.iter().all(Result::is_ok));
    set_memory(&stage, "1").await;

    let router = || {
        Router::new()
            .raw("works", |_: RawTask| async { Ok::<_, TaskError>(()) })
            .raw("fails", |_: RawTask| async {
                Err::<(), _>(TaskError::skip_retry("no"))
            })
            .raw("snoozes", |_: RawTask, context: TaskContext| async move {
                Err::<(), _>(TaskError::retry_after(
                    "later",
                    Duration::from_secs(600 + context.lease() % 2),
                ))
            })
            .raw("recovers", |_: RawTask, context: TaskContext| async move {
                match context.retried() {
                    0 => Err(TaskError::retry_after("once more", Duration::ZERO)),
                    _ => Ok(()),
                }
            })
    };
    // Both start while Redis is full; the second knows nothing of what the first did.
    let settings = || stage.server().kept_memory(1.0);
    let one = stage.serve_with(settings(), router()).await;
    let two = stage.serve_with(settings(), router()).await;
    eventually("all that can end has ended", LIMIT, async || {
        let [pending, active, scheduled, retry, archived, _] = stage.counts().await;
        let counts = [pending, active, scheduled, retry, archived];
        if counts == [0, 0, 0, EACH, EACH] {
            Ok(())
        } else {
            Err(counts)
        }
    })
    .await;
    for server in [&one, &two] {
        let key = format!("{}:server:{}", stage.prefix, server.handle.id());
        let written: String = stage.redis().hget(&key, "phase").await.unwrap();
        assert_eq!(written, "running");
        // It is written again and again: each time it gets three heartbeats to live.
        for _ in 0..3 {
            let _: () = stage.redis().expire(&key, 600).await.unwrap();
            eventually("its record is written", LIMIT, async || {
                let lives: i64 = stage.redis().ttl(&key).await.unwrap();
                if lives < 60 { Ok(()) } else { Err(lives) }
            })
            .await;
        }
        assert!(stage.redis().exists::<_, bool>(&key).await.unwrap());
        let health = server.handle.health();
        let is_full =
            |problem: &HealthProblem| matches!(problem, HealthProblem::RedisNearlyFull { .. });
        assert!(health.problems.iter().all(is_full), "{health:?}");
        assert!(health.is_live() && health.is_ready(), "{health:?}");
    }
    let servers: usize = stage
        .redis()
        .zcard(format!("{}:servers", stage.prefix))
        .await
        .unwrap();
    assert_eq!(servers, 2);
    stage.audit().await;
    let stats = [one.stop().await.stats, two.stop().await.stats];
    let sum = |f: fn(&windlass::server::Stats) -> u64| stats.iter().map(f).sum::<u64>();
    assert_eq!(sum(|stats| stats.completed), 3 * EACH as u64);
    assert_eq!(sum(|stats| stats.settles_refused), 0);
}

#[tokio::test]
async fn what_is_kept_makes_room_for_what_is_new() {
    const PAYLOAD: usize = 200_000;
    let redis = RedisServer::start(&[("maxmemory-policy", "noeviction"), ("maxmemory", "24mb")]);
    let stage = Stage::on(&redis, "kept").await;
    let client = stage.client().await;
    let enqueue = |n: usize| {
        let task = RawTask::new("kind", vec![b'x'; PAYLOAD]);
        client.enqueue(NewTask::from(task).id(n.to_string()))
    };
    let fails = || {
        Router::new().raw("kind", |_: RawTask| async {
            Err::<(), _>(TaskError::skip_retry("no"))
        })
    };
    // Dead letters fill Redis, and stay as long as that is wanted.
    let settings = stage.server().kept_memory(1.0);
    let server = stage.serve_with(settings, fails()).await;
    let mut archived = 0;
    let refused = loop {
        match enqueue(archived).await {
            Ok(_) => archived += 1,
            Err(error) => break error,
        }
        stage.wait_for_count("archived", archived).await;
    };
    assert!(archived > 60, "{archived}");
    let EnqueueError::Refused(source) = &refused else {
        panic!("{refused:?}");
    };
    let text = source.to_string();
    println!("{text}");
    let words = format!("0 tasks that have not ended, {archived} archived ones (about ");
    assert!(text.contains(&words), "{text}");
    eventually("health says it", LIMIT, async || {
        let problems = server.handle.health().problems;
        let [HealthProblem::RedisNearlyFull { used, limit, kept }] = problems[..] else {
            return Err(problems);
        };
        println!("{}", problems[0]);
        assert!(
            kept < used && used <= limit + PAYLOAD as u64,
            "{problems:?}"
        );
        assert!(kept > limit / 2, "{problems:?}");
        Ok(())
    })
    .await;
    assert_eq!(server.stop().await.stats.shed, 0);

    // By default they don't.
    let told = Arc::new(AtomicUsize::new(0));
    let hears = told.clone();
    let settings = stage.server().on_event(move |event| {
        if let Event::TasksShed { tasks, bytes, .. } = event {
            assert!(*bytes >= (*tasks * PAYLOAD) as u64, "{event:?}");
            hears.fetch_add(*tasks, Ordering::SeqCst);
        }
    });
    let server = stage.serve_with(settings, fails()).await;
    eventually("there is room", LIMIT, async || enqueue(archived).await).await;
    eventually("all is well", LIMIT, async || {
        let problems = server.handle.health().problems;
        problems.is_empty().then_some(()).ok_or(problems)
    })
    .await;
    stage
        .wait_for_state(&archived.to_string(), "archived")
        .await;
    // The oldest went, and no more than had to.
    let left = stage.ids("archived").await;
    let gone = archived + 1 - left.len();
    assert!(
        (5..archived / 2).contains(&gone),
        "{gone} of {archived} went"
    );
    assert!(!left.contains(&"0".to_owned()), "{left:?}");
    let stats = server.stop().await.stats;
    assert_eq!((stats.shed, stats.swept), (gone as u64, gone as u64));
    assert_eq!(stage.total("shed").await, gone as u64);
    assert_eq!(told.load(Ordering::SeqCst), gone);
    stage.audit().await;
}
