//! Leases and records that do not fit each other, or cannot be read: the others go on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::AsyncCommands;
use windlass::server::{Event, Undecodable};

use crate::fixture::{Act, Settings, What};
use crate::support::{LIMIT, Running, Stage, eventually, write_tasks};

/// A queue with leased tasks whose server is gone, and two servers that will take them back; what
/// these report is kept.
struct Scene {
    stage: Stage,
    ids: Vec<String>,
    reports: Arc<Mutex<Vec<String>>>,
    rescuers: Vec<Running>,
}

impl Scene {
    async fn set(name: &str, tasks: usize) -> Self {
        let stage = Stage::new(name).await;
        let props = stage.props();
        let roomy = Settings {
            concurrency: tasks,
            ..Settings::default()
        };
        let victim = props.hold(roomy).await;
        let ids = stage.enqueue_many(vec![Act::Sleep(0); tasks]).await;
        props.journal.wait_for(What::Started, tasks, LIMIT).await;
        let reports = Arc::default();
        let mut rescuers = Vec::new();
        for _ in 0..2 {
            let reports: Arc<Mutex<Vec<String>>> = Arc::clone(&reports);
            let builder = Settings::default().builder(&stage);
            let builder = builder.undecodable(Undecodable::Archive);
            let builder = builder.on_event(move |event| {
                let text = match event {
                    Event::Malformed { task, .. } => format!("malformed {}", task.id),
                    Event::Archived { task, reason, .. } => format!("{reason} {}", task.id),
                    _ => return,
                };
                reports.lock().unwrap().push(text);
            });
            rescuers.push(stage.serve_with(builder, props.router()).await);
        }
        victim.vanish().await;
        Self {
            stage,
            ids,
            reports,
            rescuers,
        }
    }

    /// Changes a queue's key, as nothing in windlass does.
    async fn tamper(&self, command: &str, arguments: &[&str]) {
        let mut command = redis::cmd(command);
        command.arg(arguments);
        let mut redis = self.stage.redis();
        let changed: redis::Value = command.query_async(&mut redis).await.unwrap();
        // Each command here answers how much it changed.
        assert_ne!(changed, redis::Value::Int(0), "nothing was tampered with");
    }

    /// Waits until this many tasks are done and this many archived; takes the reports.
    async fn end(self, completed: u64, archived: u64) -> (Stage, Vec<String>) {
        eventually("the others go on", LIMIT, async || {
            let now = self.stage.inspect().await;
            let ended = now.as_ref().is_ok_and(|census| {
                (census.succeeded, census.archived) == (completed, archived)
                    && census.in_all_states() == archived
            });
            ended.then_some(()).ok_or(now)
        })
        .await;
        for rescuer in self.rescuers {
            rescuer.stop().await;
        }
        let mut reports = std::mem::take(&mut *self.reports.lock().unwrap());
        reports.sort();
        (self.stage, reports)
    }
}

#[tokio::test]
async fn a_malformed_record_among_lost_leases_is_archived_and_reported_once() {
    let scene = Scene::set("malformed", 4).await;
    let bad = scene.ids[1].clone();
    scene
        .tamper("HDEL", &[&scene.stage.record_key(&bad), "kind"])
        .await;
    let (stage, reports) = scene.end(3, 1).await;
    assert_eq!(stage.state(&bad).await, "archived");
    assert_eq!(
        stage.field(&bad, "reason").await.as_deref(),
        Some("malformed")
    );
    assert_eq!(reports, [format!("malformed {bad}")]);
    assert_eq!(stage.total("malformed").await, 1);
    assert_eq!(stage.total("recovered").await, 3);
}

#[tokio::test]
async fn an_undecodable_payload_among_lost_leases_is_archived_and_reported_once() {
    let scene = Scene::set("undecodable", 4).await;
    let bad = scene.ids[1].clone();
    let record = scene.stage.record_key(&bad);
    // Redis answers 0 where a field is replaced.
    scene.tamper("HDEL", &[&record, "payload"]).await;
    scene.tamper("HSET", &[&record, "payload", "no task"]).await;
    let (stage, reports) = scene.end(3, 1).await;
    assert_eq!(
        stage.field(&bad, "reason").await.as_deref(),
        Some("undecodable")
    );
    assert_eq!(reports, [format!("undecodable {bad}")]);
    assert_eq!(stage.total("recovered").await, 4);
}

/// What the recoverer needs of a record is taken as its default; the task then runs, or is archived
/// where it is claimed.
#[tokio::test]
async fn nonsense_in_a_records_fields_does_not_stop_the_others() {
    const FIELDS: [&str; 9] = [
        "retried",
        "max_retry",
        "lost",
        "priority",
        "timeout",
        "deadline",
        "start_before",
        "retention",
        "unique",
    ];
    for nonsense in ["nan", "-inf", "many", ""] {
        let scene = Scene::set("nonsense", 3 + FIELDS.len()).await;
        for (id, field) in scene.ids.iter().zip(FIELDS) {
            let record = scene.stage.record_key(id);
            scene.tamper("HSET", &[&record, field, nonsense]).await;
        }
        let all = scene.ids.len() as u64;
        eventually("each is done or archived", LIMIT, async || {
            let now = scene.stage.inspect().await;
            let ended = now.as_ref().is_ok_and(|census| {
                census.in_all_states() == census.archived
                    && census.succeeded + census.archived == all
            });
            ended.then_some(()).ok_or(now)
        })
        .await;
        let census = scene.stage.audit().await;
        assert!(census.succeeded >= 3, "the sound ones: {census:?}");
        let (stage, reports) = scene.end(census.succeeded, census.archived).await;
        assert_eq!(stage.total("recovered").await, all, "{nonsense:?}");
        assert_eq!(reports.len() as u64, census.archived, "{reports:?}");
    }
}

#[tokio::test]
async fn a_record_of_another_type_is_renamed_aside() {
    let scene = Scene::set("wrong-type", 4).await;
    let bad = scene.ids[1].clone();
    let record = scene.stage.record_key(&bad);
    scene.tamper("DEL", &[&record]).await;
    scene.tamper("RPUSH", &[&record, "something"]).await;
    let (stage, reports) = scene.end(3, 0).await;
    assert_eq!(reports, [format!("malformed {bad}")]);
    assert_eq!(stage.total("malformed").await, 1);
    let aside = stage.key(&format!("malformed:{bad}"));
    let kept: Vec<String> = stage.redis().lrange(aside, 0, -1).await.unwrap();
    assert_eq!(kept, ["something"]);
}

#[tokio::test]
async fn a_lease_without_a_record_is_removed_once() {
    let scene = Scene::set("no-record", 4).await;
    scene
        .tamper("DEL", &[&scene.stage.record_key(&scene.ids[1])])
        .await;
    let (stage, reports) = scene.end(3, 0).await;
    assert!(reports.is_empty(), "{reports:?}");
    assert_eq!(stage.total("missing").await, 1);
    assert_eq!(stage.total("recovered").await, 3);
}

#[tokio::test]
async fn an_active_task_without_a_lease_is_taken_back_once() {
    let scene = Scene::set("no-lease", 4).await;
    let leases = scene.stage.key("leases");
    scene.tamper("HDEL", &[&leases, &scene.ids[1]]).await;
    let (stage, reports) = scene.end(4, 0).await;
    assert!(reports.is_empty(), "{reports:?}");
    assert_eq!(stage.total("recovered").await, 4);
}

#[tokio::test]
async fn a_leased_task_that_is_in_no_state_is_taken_back_once() {
    let scene = Scene::set("not-active", 4).await;
    let active = scene.stage.key("active");
    scene.tamper("ZREM", &[&active, &scene.ids[1]]).await;
    let (stage, reports) = scene.end(4, 0).await;
    assert!(reports.is_empty(), "{reports:?}");
    assert_eq!(stage.total("recovered").await, 4);
    assert_eq!(stage.total("adopted").await, 1);
}

#[tokio::test]
async fn a_record_without_a_lease_and_in_no_state_is_taken_back_once() {
    let scene = Scene::set("nowhere", 4).await;
    let (active, leases) = (scene.stage.key("active"), scene.stage.key("leases"));
    scene.tamper("ZREM", &[&active, &scene.ids[1]]).await;
    scene.tamper("HDEL", &[&leases, &scene.ids[1]]).await;
    let (stage, reports) = scene.end(4, 0).await;
    assert!(reports.is_empty(), "{reports:?}");
    assert_eq!(stage.total("recovered").await, 4);
    assert_eq!(stage.total("adopted").await, 1);
}

/// As when somebody deletes the set of active tasks: whoever runs them goes on. A lease of 3 s, so
/// that lost leases are looked for more often than leases are extended.
#[tokio::test]
async fn a_leased_task_that_is_in_no_state_stays_with_its_live_server() {
    let settings = Settings {
        lease: Duration::from_secs(3),
        ..Settings::default()
    };
    let stage = Stage::new("active-deleted").await;
    let rescuer = stage.rescuer(settings).await;
    let props = stage.props();
    let holder = props.hold(settings).await;
    stage.enqueue_many([Act::Wait; 3]).await;
    props.journal.wait_for(What::Started, 3, LIMIT).await;
    let deleted: u32 = stage.redis().del(stage.key("active")).await.unwrap();
    assert_eq!(deleted, 1);
    eventually("the tasks are active again", LIMIT, async || {
        let adopted = stage.total("adopted").await;
        (adopted == 3).then_some(()).ok_or(adopted)
    })
    .await;
    let adopted_until = stage.expiries().await;
    eventually("every lease was extended", LIMIT, async || {
        let now = stage.expiries().await;
        let later = now
            .iter()
            .zip(&adopted_until)
            .filter(|(now, then)| **now > **then + 1_500.0);
        (later.count() == 3).then_some(()).ok_or(now)
    })
    .await;
    props.gate.open();
    stage.wait_until_done(3).await;
    assert_eq!(props.journal.of(What::Started).len(), 3, "each ran once");
    assert_eq!(stage.total("recovered").await, 0);
    let stats = holder.stop().await.stats;
    assert_eq!((stats.completed, stats.leases_lost), (3, 0), "{stats:?}");
    rescuer.stop().await;
}

/// More than a look finds, with all that somebody may write by hand; and one more, behind them.
#[tokio::test]
async fn leases_that_were_edited_by_hand_are_taken_back_like_those_with_none() {
    const EDITED: usize = 250;
    let stage = Stage::new("edited").await;
    write_tasks(&stage, EDITED as u64 + 1, "active", |n| n + 1).await;
    let by_hand: [&[u8]; 6] = [
        b"",
        b" ",
        b"x",
        b"1@gone",
        b"x y z",
        &[0xff, b'@', 0xfe, b' '],
    ];
    let mut pipeline = redis::pipe();
    for n in 0..EDITED {
        let lease = by_hand[n % by_hand.len()];
        pipeline.hset(stage.key("leases"), format!("active-{n}"), lease);
    }
    let _: () = pipeline.query_async(&mut stage.redis()).await.unwrap();
    let rescuer = stage.rescuer(Settings::default()).await;
    eventually("all are taken back", LIMIT, async || {
        let left = stage.ids("active").await.len();
        (left == 0).then_some(()).ok_or(left)
    })
    .await;
    assert_eq!(rescuer.stop().await.stats.recovered, EDITED as u64 + 1);
    stage.audit().await;
}
