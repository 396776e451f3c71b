use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use futures::future::select_ok;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::broker::connection::problem::{ConnectProblem, Failure};
use crate::broker::connection::resolver::Resolver;

/// A stream to Redis, of whichever kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// What the system does about a TCP connection that says nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct TcpSettings {
    pub(super) keepalive: Duration,
    pub(super) user_timeout: Duration,
}

/// Tries all addresses of the host at once: one of them may lead nowhere.
pub(super) async fn tcp(
    host: &str,
    port: u16,
    settings: TcpSettings,
    resolver: &Resolver,
) -> Result<TcpStream, Failure> {
    let found = resolver.look_up(host, port).await;
    let addresses = found.map_err(|error| Failure::new(ConnectProblem::Name, error))?;
    let attempts = addresses
        .into_iter()
        .map(|it| Box::pin(connect(it, settings)));
    let (stream, _) = select_ok(attempts).await?;
    Ok(stream)
}

async fn connect(address: SocketAddr, settings: TcpSettings) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // Off by default, and it costs up to 40 ms a command.
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    socket.set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(settings.keepalive)
            .with_interval(settings.keepalive / 3)
            .with_retries(3),
    )?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(settings.user_timeout))?;
    Ok(stream)
}

#[cfg(unix)]
pub(super) async fn unix(path: &Path) -> Result<tokio::net::UnixStream, Failure> {
    Ok(tokio::net::UnixStream::connect(path).await?)
}

#[cfg(not(unix))]
pub(super) async fn unix(_: &Path) -> Result<TcpStream, Failure> {
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
}
