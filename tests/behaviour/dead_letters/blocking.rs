//! Hooks that block: each runs by itself, and one that never returns keeps its slot.

use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::time::{Duration, Instant};

use windlass::Router;
use windlass::handler::DeadLetter;
use windlass::inspector::CancelMode;
use windlass::server::Event;

use super::until_none_is_owed;
use crate::support::{Stage, puppet, seen};

/// Has this many tasks owe their hooks, whose ids are numbers from 0 on.
async fn owe(stage: &Stage, router: &Router, tasks: usize) {
    // Their hooks are known from then on.
    drop(stage.server().build(router.clone()).await.unwrap());
    let inspector = stage.inspector().await;
    for n in 0..tasks {
        let id = n.to_string();
        stage.enqueue_for_later(&id).await;
        let cancel = inspector.cancel("default", &id, CancelMode::Archive);
        cancel.await.unwrap();
    }
    assert_eq!(stage.count("hooks").await, tasks);
}

/// Runs eight hooks that end only once all of them run, and then block for 500 ms.
async fn eight_block_together(
    stage: &Stage,
    router: impl FnOnce(Arc<dyn Fn() + Send + Sync>) -> Router,
) {
    let all_run = Barrier::new(8);
    let router = router(Arc::new(move || {
        all_run.wait();
        std::thread::sleep(Duration::from_millis(500));
    }));
    owe(stage, &router, 8).await;
    let began = Instant::now();
    let server = stage.serve(router).await;
    until_none_is_owed(stage).await;
    println!("8 hooks that block for 500 ms: {:?}", began.elapsed());
    assert_eq!(server.stop().await.stats.hooks_run, 8);
}

#[tokio::test]
async fn eight_that_block_run_at_the_same_time_on_threads() {
    let stage = Stage::new("threads").await;
    let router = |block: Arc<dyn Fn() + Send + Sync>| {
        let hook = move |letter: DeadLetter| {
            let name = std::thread::current().name().map(str::to_owned);
            assert_eq!(name.as_deref(), Some(&*letter.kind));
            block();
            Ok::<_, String>(())
        };
        puppet().0.on_dead_letter_blocking("kind", hook)
    };
    eight_block_together(&stage, router).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 12)]
async fn eight_async_ones_that_block_hold_up_only_their_threads() {
    let stage = Stage::new("workers").await;
    let router = |block: Arc<dyn Fn() + Send + Sync>| {
        let hook = move |_: DeadLetter| {
            let block = block.clone();
            async move {
                block();
                Ok::<_, String>(())
            }
        };
        puppet().0.on_dead_letter("kind", hook)
    };
    eight_block_together(&stage, router).await;
}

#[tokio::test]
async fn a_blocking_hook_that_fails_or_panics_is_told_and_tried_again() {
    let stage = Stage::new("blocking-fails").await;
    let (tell, mut told) = seen();
    let (observe, mut events) = seen();
    let router = puppet()
        .0
        .on_dead_letter_blocking("kind", move |letter: DeadLetter| {
            tell.send(()).unwrap();
            assert_ne!(letter.id, "0", "no luck");
            Err::<(), _>("not now")
        });
    owe(&stage, &router, 2).await;
    let settings = stage.server().on_event(move |event| {
        if let Event::HookFailed { task, error, .. } = event {
            let text = format!("{} {} {error}", task.kind, task.queue);
            let _ = observe.send((task.id.clone(), text));
        }
    });
    let server = stage.serve_with(settings, router).await;
    told.take(2).await;
    let mut events = events.take(2).await;
    events.sort();
    let [(first, panicked), (second, failed)] = events.try_into().unwrap();
    assert_eq!((&*first, &*second), ("0", "1"));
    assert!(
        panicked.starts_with("kind default panicked at "),
        "{panicked}"
    );
    assert_eq!(failed, "kind default not now");
    super::hurry(&stage, "0").await;
    told.next().await;
    let report = server.stop().await;
    assert_eq!((report.stats.panics, report.stats.hooks_run), (2, 0));
    stage.audit().await;
}

/// A door for threads.
#[derive(Default)]
struct Door(Mutex<bool>, Condvar);

impl Door {
    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn pass(&self) {
        let is_open = self.0.lock().unwrap();
        drop(self.1.wait_while(is_open, |is_open| !*is_open).unwrap());
    }
}

#[tokio::test]
async fn hooks_that_never_return_are_each_told_of_and_keep_their_slots() {
    let stage = Stage::new("never").await;
    let door = Arc::new(Door::default());
    let (tell, mut told) = seen();
    let (observe, mut events) = seen();
    let passes = door.clone();
    let router = puppet()
        .0
        .on_dead_letter_blocking("kind", move |letter: DeadLetter| {
            let _ = tell.send(letter.id);
            passes.pass();
            Ok::<_, String>(())
        });
    owe(&stage, &router, 9).await;
    let settings = stage.server().on_event(move |event| {
        if let Event::HookFailed { task, error, .. } = event {
            let _ = observe.send((task.id.clone(), error.clone()));
        }
    });
    let server = stage.serve_with(settings, router).await;
    let began = told.take(8).await;
    let mut failed = events.take(8).await;
    failed.sort();
    let expected = |mut ids: Vec<String>| {
        ids.sort();
        let tell = |id| (id, "it took longer than 10s".to_owned());
        ids.into_iter().map(tell).collect::<Vec<_>>()
    };
    assert_eq!(failed, expected(began));
    // Each would have a thread more now, if slots did not count.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(told.so_far(), [] as [String; 0]);
    door.open();
    told.next().await;
    stage.wait_for_count("hooks", 8).await;
    assert_eq!(server.stop().await.stats.hooks_run, 1);
    stage.audit().await;
}
