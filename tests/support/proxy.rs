//! A TCP proxy in front of a Redis, as a network that fails on demand.

mod link;
mod resp;
mod state;

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Arc;

use tokio::runtime::{self, Runtime};

use self::state::{Fault, Loss, Open, Shared};

/// What the proxy does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything passes.
    Pass,
    /// New connections are closed at once; those that are open pass.
    Refuse,
    /// Connections are accepted; what is sent in either direction is lost, and
    /// neither side learns that the other one closes. A connection that lost
    /// something is closed when this mode ends.
    BlackHole,
    /// Connections are accepted; what is sent in either direction waits and
    /// passes later, as in a network that was cut for a while.
    Hold,
}

/// A proxy on a loopback port of its own. Runs on its own thread, so that a
/// test that blocks its runtime, or stops its clock, does not stop the proxy.
/// Ends when dropped.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

/// An open connection, as the test sees it.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Counts from 1 in the order in which connections were accepted.
    pub id: u64,
    /// The names of the commands that it has carried; tells connections apart.
    pub commands: BTreeSet<String>,
}

impl Proxy {
    /// Starts a proxy for the Redis at this loopback port.
    pub fn start(port: u16) -> Proxy {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("proxy")
            .enable_all()
            .build()
            .expect("a runtime must start");
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port must be free");
        listener.set_nonblocking(true).expect("a socket option");
        let own_port = listener.local_addr().expect("the port is bound").port();
        let shared = Arc::new(Shared::new(port));
        runtime.spawn(link::accept(listener, shared.clone()));
        Proxy {
            port: own_port,
            shared,
            runtime: Some(runtime),
        }
    }

    /// `redis://127.0.0.1:<the proxy's port>/`
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets the mode of all connections, open and to come.
    pub fn set_mode(&self, mode: Mode) {
        let mut state = self.shared.state();
        state.mode = mode;
        for open in state.open.values() {
            open.set_mode(mode);
        }
    }

    /// Sets the mode of one open connection.
    pub fn set_mode_of(&self, id: u64, mode: Mode) {
        if let Some(open) = self.shared.state().open.get(&id) {
            open.set_mode(mode);
        }
    }

    /// Closes all open connections abruptly: both sides get a reset.
    pub fn reset_all(&self) {
        for open in self.shared.state().open.values() {
            open.reset();
        }
    }

    /// Closes one open connection abruptly.
    pub fn reset(&self, id: u64) {
        if let Some(open) = self.shared.state().open.get(&id) {
            open.reset();
        }
    }

    /// Lets Redis execute the next request that `matches`, but drops its reply,
    /// with all that comes after on this connection, and closes the connection.
    /// `matches` sees one request at a time, in the protocol's encoding.
    /// Replaces a fault that has not happened yet.
    pub fn drop_replies_once(&self, matches: impl FnMut(&[u8]) -> bool + Send + 'static) {
        self.arm(Loss::Reply, matches);
    }

    /// Closes the connection instead of passing on the next request that
    /// `matches`: Redis does not execute it.
    pub fn drop_requests_once(&self, matches: impl FnMut(&[u8]) -> bool + Send + 'static) {
        self.arm(Loss::Request, matches);
    }

    /// How many requests or replies were dropped as ordered.
    pub fn dropped(&self) -> u64 {
        self.shared.state().dropped
    }

    /// How many connections are open now.
    pub fn connections(&self) -> usize {
        self.shared.state().open.len()
    }

    /// The open connections, oldest first.
    pub fn open(&self) -> Vec<Connection> {
        let state = self.shared.state();
        let view = |(id, open): (&u64, &Open)| Connection {
            id: *id,
            commands: open.commands.clone(),
        };
        state.open.iter().map(view).collect()
    }

    /// How many connections were accepted so far, without the refused ones.
    pub fn accepted(&self) -> u64 {
        self.shared.state().accepted
    }

    /// How many connections were refused so far.
    pub fn refused(&self) -> u64 {
        self.shared.state().refused
    }

    fn arm(&self, loss: Loss, matches: impl FnMut(&[u8]) -> bool + Send + 'static) {
        self.shared.state().fault = Some(Fault {
            loss,
            matches: Box::new(matches),
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for it is not allowed where the test is async.
            runtime.shutdown_background();
        }
    }
}
