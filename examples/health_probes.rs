//! A worker that tells Kubernetes how it is, over HTTP. Start it, look at both addresses, stop Redis and
//! look again: it is no longer ready, but still alive, because it waits for Redis.
//!
//! ```text
//! cargo run --example health_probes
//! curl -i http://127.0.0.1:8080/readyz
//! ```

use std::error::Error;

use axum::Router as Http;
use axum::http::StatusCode;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use windlass::server::ServerHandle;
use windlass::{Router, Server, Task};

#[derive(Serialize, Deserialize)]
struct Resize {
    photo: u64,
}

impl Task for Resize {
    const KIND: &'static str = "photo:resize";
}

async fn resize(task: Resize) -> Result<(), String> {
    println!("photo {}", task.photo);
    Ok(())
}

/// The two probes, which say what is wrong to whoever looks.
fn probes(worker: ServerHandle) -> Http {
    let live = worker.clone();
    Http::new()
        // Kubernetes starts a container anew that fails this. So it fails only where that helps: a
        // handler blocks the runtime, or a part of the server has died.
        .route("/livez", get(async move || answer(live.is_live(), &live)))
        // Fails also while the worker starts or stops, and while Redis is away. A rollout waits for it.
        .route(
            "/readyz",
            get(async move || answer(worker.is_ready(), &worker)),
        )
}

fn answer(well: bool, worker: &ServerHandle) -> (StatusCode, String) {
    let health = worker.health();
    let mut text = health.phase.to_string();
    for problem in health.problems {
        text += &format!("\n{problem}");
    }
    let status = if well {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, text)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt::init();
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1/".to_owned());
    let router = Router::new().task(resize);
    let server = Server::builder().redis(&url).build(router).await?;

    // For Kubernetes, listen on 0.0.0.0: its probes come from outside the container.
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    tokio::spawn(axum::serve(listener, probes(server.handle())).into_future());

    // The probes are answered until the end of the process, also while the worker stops.
    server.run().await?;
    Ok(())
}
