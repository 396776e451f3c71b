//! How long a Redis that is not there is waited for.

use std::time::Duration;

use tokio::time::Instant;
use windlass::{Client, WaitError};

use crate::support::{LIMIT, RedisServer, Stage};

#[tokio::test]
async fn a_wait_is_told_at_once_that_it_is_not_allowed() {
    let user = "limited on >secret ~* &* +@all -evalsha";
    let redis = RedisServer::start(&[("user", user)]);
    let url = format!("redis://limited:secret@127.0.0.1:{}/", redis.port());
    let stage = Stage::on(&redis, "denied").await.behind(url);
    let client = Client::lazy(stage.config()).unwrap();
    let start = Instant::now();
    let waited = client.wait::<()>("default", "id", LIMIT).await;
    assert!(matches!(waited, Err(WaitError::Broker(_))), "{waited:?}");
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
}
