//! The connections through the proxy.

use std::io;
use std::net;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::Mode;
use super::resp::request_length;
use super::state::{Loss, Order, Shared};

/// How long Redis may take to execute a request whose reply is dropped.
const EXECUTION_LIMIT: Duration = Duration::from_secs(5);

const BUFFER: usize = 64 * 1024;

/// Accepts connections for as long as the proxy lives.
pub async fn accept(listener: net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("the listener is non-blocking");
    loop {
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        let mut state = shared.state();
        if state.mode == Mode::Refuse {
            state.refused += 1;
            continue;
        }
        let (id, orders) = state.admit();
        drop(state);
        let link = Link {
            id,
            shared: shared.clone(),
            orders,
            lossy: false,
        };
        tokio::spawn(link.run(client));
    }
}

/// One accepted connection and its counterpart to Redis.
struct Link {
    id: u64,
    shared: Arc<Shared>,
    orders: watch::Receiver<Order>,
    /// Something was lost, so that replies no longer belong to their requests.
    lossy: bool,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.state().open.remove(&self.id);
    }
}

/// The connection is to be closed.
struct Close;

impl From<io::Error> for Close {
    fn from(_: io::Error) -> Self {
        Close
    }
}

impl Link {
    async fn run(mut self, mut client: TcpStream) {
        let mut orders = self.orders.clone();
        let mut redis = None;
        tokio::select! {
            _ = self.serve(&mut client, &mut redis) => {}
            // Apart from serving, which may be stuck in a write.
            _ = orders.wait_for(|order| *order == Order::Reset) => {}
        }
        let reset = *orders.borrow() == Order::Reset;
        if reset {
            for stream in [Some(client), redis].into_iter().flatten() {
                let _ = stream.set_zero_linger();
            }
        }
    }

    async fn serve(
        &mut self,
        client: &mut TcpStream,
        redis: &mut Option<TcpStream>,
    ) -> Result<(), Close> {
        client.set_nodelay(true)?;
        while matches!(self.mode()?, Mode::BlackHole | Mode::Hold) {
            self.wait_for_pass(client).await?;
        }
        let upstream = TcpStream::connect(("127.0.0.1", self.shared.upstream)).await?;
        upstream.set_nodelay(true)?;
        let (mut from_client, mut to_client) = client.split();
        let (mut from_redis, mut to_redis) = redis.insert(upstream).split();
        let mut requests = Vec::with_capacity(BUFFER);
        let mut replies = Vec::with_capacity(BUFFER);
        let mut ended = false;
        loop {
            // Asked for after each read: what was sent after a mode was set is
            // treated in that mode.
            let mode = self.mode()?;
            match mode {
                Mode::Pass | Mode::Refuse => {
                    self.pass_on(&mut requests, &mut to_redis, &mut from_redis)
                        .await?;
                    to_client.write_all(&replies).await?;
                    replies.clear();
                    if ended {
                        return Ok(());
                    }
                }
                Mode::BlackHole => {
                    self.lossy |= ended || !requests.is_empty() || !replies.is_empty();
                    requests.clear();
                    replies.clear();
                }
                Mode::Hold => {}
            }
            let listening = mode != Mode::Hold && !ended;
            tokio::select! {
                biased;
                _ = self.orders.changed() => {}
                read = from_client.read_buf(&mut requests), if listening => ended = read? == 0,
                read = from_redis.read_buf(&mut replies), if listening => ended = read? == 0,
            }
        }
    }

    /// The present mode, if the connection may live on in it.
    fn mode(&mut self) -> Result<Mode, Close> {
        match *self.orders.borrow_and_update() {
            Order::Run(mode) if mode == Mode::BlackHole || !self.lossy => Ok(mode),
            _ => Err(Close),
        }
    }

    /// Serves a connection that was accepted in a black hole or on hold.
    async fn wait_for_pass(&mut self, client: &mut TcpStream) -> Result<(), Close> {
        let black_hole = self.mode()? == Mode::BlackHole;
        let mut lost = [0; 4096];
        tokio::select! {
            biased;
            _ = self.orders.changed() => Ok(()),
            read = client.read(&mut lost), if black_hole => {
                self.lossy = true;
                if read? == 0 { Err(Close) } else { Ok(()) }
            }
        }
    }

    /// Passes on the complete requests, up to one that is to suffer a loss.
    async fn pass_on(
        &mut self,
        requests: &mut Vec<u8>,
        to_redis: &mut WriteHalf<'_>,
        from_redis: &mut ReadHalf<'_>,
    ) -> Result<(), Close> {
        let mut end = 0;
        while let Some(length) = request_length(&requests[end..]) {
            let loss = self.note(&requests[end..end + length]);
            if loss != Some(Loss::Request) {
                end += length;
            }
            if loss.is_some() {
                to_redis.write_all(&requests[..end]).await?;
                await_execution(to_redis, from_redis).await;
                self.shared.state().dropped += 1;
                return Err(Close);
            }
        }
        to_redis.write_all(&requests[..end]).await?;
        requests.drain(..end);
        Ok(())
    }

    /// Remembers the request; answers the loss that it is to suffer.
    fn note(&self, request: &[u8]) -> Option<Loss> {
        let mut state = self.shared.state();
        if let Some(open) = state.open.get_mut(&self.id) {
            open.commands.insert(command(request));
        }
        let fault = state.fault.take_if(|fault| (fault.matches)(request));
        fault.map(|fault| fault.loss)
    }
}

/// The name of a request's command.
fn command(request: &[u8]) -> String {
    let name = request.split(|&byte| byte == b'\n').nth(2);
    let name = String::from_utf8_lossy(name.unwrap_or_default());
    name.trim_end().to_uppercase()
}

/// Redis executes all that it was sent before it sees the end of the stream,
/// and then closes its side.
async fn await_execution(to_redis: &mut WriteHalf<'_>, from_redis: &mut ReadHalf<'_>) {
    let _ = to_redis.shutdown().await;
    let mut replies = vec![0; BUFFER];
    let drain = async { while let Ok(1..) = from_redis.read(&mut replies).await {} };
    let _ = timeout(EXECUTION_LIMIT, drain).await;
}
