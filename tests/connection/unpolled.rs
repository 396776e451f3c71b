//! Futures that are polled once, and then kept.

use futures::FutureExt;
use windlass::task::RawTask;
use windlass::{Router, TaskContext};

use crate::fixture::{LIMIT, Stage};
use crate::seen::seen;
use crate::support::{Proxy, RedisServer, eventually};

#[tokio::test]
async fn a_progress_that_is_not_polled_while_it_connects_holds_up_no_settlement() {
    let proxy = Proxy::start(RedisServer::shared().port());
    let stage = Stage::new("progress").await.behind(proxy.url());
    let client = stage.client().await;
    let (says, mut runs) = seen();
    let (release, released) = tokio::sync::watch::channel(false);
    let (cut, is_cut) = tokio::sync::watch::channel(false);
    let router = Router::new()
        .raw("keeps", move |_: RawTask, context: TaskContext| {
            let (says, mut is_cut, mut released) = (says.clone(), is_cut.clone(), released.clone());
            async move {
                context.progress(0, 1, "connects").await?;
                says.send("connected".to_owned())?;
                is_cut.wait_for(|is_cut| *is_cut).await?;
                while context.progress(0, 1, "is cut off").await.is_ok() {}
                let mut progress = Box::pin(context.progress(0, 1, "connects again"));
                assert!((&mut progress).now_or_never().is_none());
                says.send("kept".to_owned())?;
                released.wait_for(|released| *released).await?;
                progress.await?;
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
            }
        })
        .raw("quick", async |_: RawTask| Ok::<_, String>(()));
    let server = stage.serve_with(stage.server(), router).await;
    let keeps = RawTask::new("keeps", "");
    client.enqueue(keeps).await.unwrap();
    assert_eq!(runs.next().await, "connected");
    proxy.reset_all();
    cut.send(true).unwrap();
    assert_eq!(runs.next().await, "kept");
    eventually("an enqueue gets through", LIMIT, async || {
        client.enqueue(RawTask::new("quick", "")).await.ok()
    })
    .await;
    eventually("the other one is settled", LIMIT, async || {
        let completed = server.handle.stats().completed;
        if completed == 1 {
            Ok(())
        } else {
            Err(completed)
        }
    })
    .await;
    release.send(true).unwrap();
    stage.wait_until_drained("default", LIMIT).await;
    server.stop().await;
}
