//! What runs in the other processes: each prints, for each task, how many ns it waited.

use redis::AsyncCommands;
use windlass::task::RawTask;
use windlass::{Router, Server};

use crate::common::{Failure, connect};
use crate::now_ns;

pub const KIND: &str = "bench:pickup";
pub const LIST: &str = "bare";
pub const PAYLOAD: usize = 64;

pub async fn run(role: &str, url: &str) -> Result<(), Failure> {
    match role {
        "server" => serve(url).await,
        _ => pop(url).await,
    }
}

/// At default settings.
async fn serve(url: &str) -> Result<(), Failure> {
    let router = Router::new().raw(KIND, async |task: RawTask| report(&task.payload));
    Server::builder()
        .redis(url)
        .build(router)
        .await?
        .run()
        .await?;
    Ok(())
}

async fn pop(url: &str) -> Result<(), Failure> {
    let mut connection = connect(url).await?;
    loop {
        let (_, payload): (String, Vec<u8>) = connection.blpop(LIST, 0.0).await?;
        report(&payload)?;
    }
}

fn report(payload: &[u8]) -> Result<(), Failure> {
    let now = now_ns();
    let sent = payload.first_chunk().ok_or("no time in the payload")?;
    println!("{}", now.saturating_sub(u128::from_le_bytes(*sent)));
    Ok(())
}
