use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use futures::FutureExt;
use futures::future::Shared;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Looks names up on a thread of its own. The runtime's threads for blocking work belong to the
/// program, which may have filled all of them.
#[derive(Debug, Default)]
pub(super) struct Resolver(Mutex<Option<Lookup>>);

/// A look-up that all wait for who want one while it lasts, so that a resolver that hangs takes one
/// thread and not one for each attempt.
#[derive(Debug)]
struct Lookup {
    thread: JoinHandle<()>,
    found: Shared<oneshot::Receiver<Found>>,
}

type Found = Result<Vec<SocketAddr>, Arc<io::Error>>;

impl Resolver {
    /// Always asked for the same host and port.
    pub(super) async fn look_up(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, io::Error> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        let found = self.begin(host, port)?;
        match found.await {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(io::Error::new(error.kind(), error)),
            Err(_) => Err(io::Error::other("the look-up ended without a result")),
        }
    }

    fn begin(&self, host: &str, port: u16) -> io::Result<Shared<oneshot::Receiver<Found>>> {
        let mut underway = self.0.lock();
        if let Some(lookup) = underway.as_ref().filter(|it| !it.thread.is_finished()) {
            return Ok(lookup.found.clone());
        }
        let (tell, found) = oneshot::channel();
        let found = found.shared();
        let host = host.to_owned();
        let thread = thread::Builder::new()
            .name("windlass-resolver".into())
            .spawn(move || {
                let found = (host.as_str(), port).to_socket_addrs();
                // Nobody may wait any more.
                let _ = tell.send(found.map(Iterator::collect).map_err(Arc::new));
            })?;
        *underway = Some(Lookup {
            thread,
            found: found.clone(),
        });
        Ok(found)
    }
}
