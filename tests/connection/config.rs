//! One description of a connection for all who take one.

use windlass::task::RawTask;
use windlass::{Client, Inspector, Router, Server};

use crate::support::{LIMIT, Stage};

#[tokio::test]
async fn a_client_a_server_and_inspectors_meet_by_one_description() {
    let stage = Stage::new("one").await;
    let config = stage.config();
    let client = Client::connect(&config).await.unwrap();
    let router = || Router::new().raw("kind", async |_: RawTask| Ok::<_, String>(()));
    let enqueue = client.enqueue(RawTask::new("kind", "x"));
    let id = enqueue.await.unwrap().id;
    let own = Inspector::connect(&config).await.unwrap();
    for inspector in [own, client.inspector()] {
        assert!(inspector.task("default", &id).await.unwrap().is_some());
    }
    // A builder serves more than once, too.
    let builder = Server::builder().redis(config);
    for builder in [builder.clone(), builder] {
        let server = stage.serve_with(builder, router()).await;
        stage.wait_until_drained("default", LIMIT).await;
        server.stop().await;
    }
}
