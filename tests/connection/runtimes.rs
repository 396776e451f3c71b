//! A client that two runtimes share, of which one ends.

use std::time::Duration;

use futures::FutureExt;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use windlass::{BrokerError, Client, EnqueueError, NewTask, RawTask};

use crate::fixture::{LIMIT, Stage};
use crate::support::{RedisServer, within};

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

fn task() -> NewTask {
    NewTask::from(RawTask::new("kind", "x"))
}

/// Polls once before it goes on in the background, so that it is on its way for sure.
fn begun<F>(runtime: &Runtime, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut future = Box::pin(future);
    let _runtime = runtime.enter();
    assert!((&mut future).now_or_never().is_none(), "nobody answers yet");
    runtime.spawn(future)
}

async fn works(client: &Client) {
    let enqueue = within(
        "an enqueue is answered",
        LIMIT,
        client.enqueue(task()).send(),
    );
    assert!(enqueue.await.unwrap().is_new());
    let many = within("a list is answered", LIMIT, client.enqueue_many([task()]));
    assert!(many.await.remove(0).unwrap().is_new());
}

#[test]
fn a_client_outlives_the_runtime_that_it_was_made_on() {
    let (first, second) = (runtime(), runtime());
    let client = first.block_on(async {
        let stage = Stage::new("outlives").await;
        stage.client().await
    });
    first.block_on(works(&client));
    second.block_on(works(&client));
    first.shutdown_timeout(Duration::from_secs(5));
    second.block_on(works(&client));
    let third = runtime();
    second.shutdown_timeout(Duration::from_secs(5));
    third.block_on(works(&client));
}

#[test]
fn enqueues_that_a_runtime_leaves_behind_are_answered() {
    let redis = RedisServer::start(&[]);
    let (first, second) = (runtime(), runtime());
    let client = first.block_on(async {
        let stage = Stage::on(&redis, "left-behind").await;
        stage.client().await
    });
    first.block_on(works(&client));
    redis.pause();
    // The first runtime sends, and Redis does not answer; the second one's tasks wait behind it.
    let sending = begun(&first, client.enqueue(task()).id("sending").send());
    let waiting: Vec<_> = (0..10)
        .map(|i| client.enqueue(task()).id(format!("waiting {i}")).send())
        .map(|enqueue| begun(&second, enqueue))
        .collect();
    first.shutdown_timeout(Duration::from_secs(5));
    redis.resume();
    assert!(second.block_on(sending).unwrap_err().is_cancelled());
    for enqueue in waiting {
        let answer = second
            .block_on(within("it is answered", LIMIT, enqueue))
            .unwrap();
        match answer {
            Ok(enqueued) => assert!(enqueued.is_new()),
            Err(EnqueueError::Refused(source)) => {
                assert!(matches!(source, BrokerError::NotSent), "{source:?}");
            }
            // The first runtime drove the connection on which it went.
            Err(EnqueueError::OutcomeUnknown { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    second.block_on(works(&client));
}
