//! An observer that blocks, which is the user's affair and not the server's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use redis::AsyncCommands;
use windlass::Router;
use windlass::server::ServerBuilder;
use windlass::task::RawTask;

use crate::support::{LIMIT, Stage, eventually, seen};

/// An observer that blocks at its first event.
struct Blocked {
    told: Arc<AtomicUsize>,
    began: Receiver<()>,
    go_on: Sender<()>,
}

fn blocking(settings: ServerBuilder) -> (ServerBuilder, Blocked) {
    let told = Arc::new(AtomicUsize::new(0));
    let ((begins, began), (go_on, may_go_on)) = (channel(), channel());
    let (count, may_go_on) = (told.clone(), Mutex::new(may_go_on));
    let settings = settings.on_event(move |_| {
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            begins.send(()).unwrap();
            let _: Result<(), _> = may_go_on.lock().unwrap().recv();
        }
    });
    let blocked = Blocked { told, began, go_on };
    (settings, blocked)
}

impl Blocked {
    async fn wait(&self) {
        eventually("the observer blocks", LIMIT, async || self.began.try_recv()).await;
    }
}

fn fails(router: Router) -> Router {
    router.raw("fails", |_: RawTask| async { Err::<(), _>("oh") })
}

/// The event of a lost lease comes from the very thread that extends the others.
#[tokio::test]
async fn an_observer_that_blocks_holds_up_no_lease_no_task_and_no_shutdown() {
    let stage = Stage::new("blocked").await;
    let client = stage.client().await;
    let (says, mut started) = seen();
    let router = Router::new().raw("holds", move |_: RawTask| {
        let _ = says.send(());
        std::future::pending::<Result<(), String>>()
    });
    let (settings, observer) = blocking(stage.server());
    let settings = settings.shutdown_grace(std::time::Duration::ZERO);
    let server = stage.serve_with(settings, fails(router)).await;
    for id in ["lost", "kept"] {
        let enqueue = client.enqueue(RawTask::new("holds", "x")).id(id);
        enqueue.await.unwrap();
        started.next().await;
    }
    let _: () = stage
        .redis()
        .hdel(stage.key("leases"), "lost")
        .await
        .unwrap();
    observer.wait().await;
    assert_eq!(server.handle.stats().leases_lost, 1);

    let expiry = async || {
        let expiry: f64 = stage
            .redis()
            .zscore(stage.key("active"), "kept")
            .await
            .unwrap();
        expiry
    };
    for _ in 0..3 {
        let before = expiry().await;
        eventually("the lease is extended", LIMIT, async || {
            (expiry().await > before).then_some(())
        })
        .await;
    }
    let enqueue = client.enqueue(RawTask::new("fails", "x")).id("fails");
    enqueue.max_retry(0).await.unwrap();
    stage.wait_for_state("fails", "archived").await;
    assert_eq!(server.stop().await.stats.released, 1);
    assert_eq!(observer.told.load(Ordering::Relaxed), 1);
    observer.go_on.send(()).unwrap();
    eventually("it is told of what waited", LIMIT, async || {
        let told = observer.told.load(Ordering::Relaxed);
        if told == 2 { Ok(()) } else { Err(told) }
    })
    .await;
}

#[tokio::test]
async fn what_does_not_wait_for_an_observer_any_more_is_counted() {
    const WAITING: usize = windlass::defaults::EVENTS;
    let stage = Stage::new("dropped").await;
    let client = stage.client().await;
    let (settings, observer) = blocking(stage.server());
    let server = stage.serve_with(settings, fails(Router::new())).await;
    let task = || windlass::NewTask::from(RawTask::new("fails", "x")).max_retry(0);
    client.enqueue(task()).await.unwrap();
    observer.wait().await;
    let tasks = std::iter::repeat_with(task).take(WAITING + 7);
    for enqueued in client.enqueue_many(tasks).await {
        enqueued.unwrap();
    }
    eventually("all are archived", LIMIT, async || {
        let archived = server.handle.stats().archived;
        let all = archived == WAITING as u64 + 8;
        if all { Ok(()) } else { Err(archived) }
    })
    .await;
    observer.go_on.send(()).unwrap();
    assert_eq!(server.stop().await.stats.events_dropped, 7);
    assert_eq!(observer.told.load(Ordering::Relaxed), WAITING + 1);
}
