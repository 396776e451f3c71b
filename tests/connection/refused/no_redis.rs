//! Addresses behind which there is no Redis, or one that cannot be used.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windlass::client::ClientError;
use windlass::error::{BrokerError, ConnectProblem, SetupProblem};
use windlass::server::BuildError;
use windlass::task::RawTask;
use windlass::{Client, RedisConfig, Router, Server};

use super::whole;
use crate::support::RedisServer;

const TIMEOUT: Duration = Duration::from_millis(500);

async fn raw(_: RawTask) -> Result<(), String> {
    Ok(())
}

/// What a client and a server say of this address, within their time.
async fn refused(url: &str) -> [(BrokerError, String); 2] {
    let start = Instant::now();
    let config = RedisConfig::new(url).connect_timeout(TIMEOUT);
    let config = config.command_timeout(TIMEOUT);
    let error = Client::connect(&config).await.unwrap_err();
    assert!(start.elapsed() < 3 * TIMEOUT, "{:?}", start.elapsed());
    let text = whole(&error);
    let ClientError::Broker(client) = error else {
        panic!("{error:?}");
    };
    let start = Instant::now();
    let builder = Server::builder().redis(&config);
    let built = builder.build(Router::new().raw("kind", raw)).await;
    assert!(start.elapsed() < 3 * TIMEOUT, "{:?}", start.elapsed());
    let error = built.unwrap_err();
    let server_text = whole(&error);
    let BuildError::Broker(server) = error else {
        panic!("{error:?}");
    };
    [(client, text), (server, server_text)]
}

/// Checks that both name this problem, the address, and what to do.
async fn assert_problem(url: &str, expected: ConnectProblem, words: &str) {
    for (error, text) in refused(url).await {
        let BrokerError::Connect {
            address, problem, ..
        } = &error
        else {
            panic!("{url}: {error:?}");
        };
        assert_eq!(*problem, expected, "{text}");
        assert!(
            text.contains(words) && text.contains(address.as_str()),
            "{text}"
        );
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}

/// A listener that does this with each connection; its URL.
async fn listener<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    format!("redis://user:s3cr3t@{address}/")
}

#[tokio::test]
async fn nobody_listens() {
    let words = "is Redis running, and is the address right?";
    assert_problem("redis://127.0.0.1:1/", ConnectProblem::Refused, words).await;
    assert_problem("unix:///nowhere/redis.sock", ConnectProblem::Refused, words).await;
}

#[tokio::test]
async fn the_name_is_unknown() {
    let url = "redis://no-such-host.invalid/";
    assert_problem(url, ConnectProblem::Name, "could not be looked up").await;
}

#[tokio::test]
async fn the_login_is_refused() {
    let redis = RedisServer::start(&[("requirepass", "right")]);
    let port = redis.port();
    let words = "it refused the login; check user and password";
    for login in ["", ":s3cr3t@", "nobody:s3cr3t@", "default:s3cr3t@"] {
        let url = format!("redis://{login}127.0.0.1:{port}/");
        assert_problem(&url, ConnectProblem::Login, words).await;
    }
    let url = format!("redis://:right@127.0.0.1:{port}/");
    Client::connect(&url).await.unwrap();
}

#[tokio::test]
async fn the_database_does_not_exist() {
    let redis = RedisServer::start(&[("databases", "2")]);
    for (error, text) in refused(&format!("{}7", redis.url())).await {
        assert!(matches!(error, BrokerError::Connect { .. }), "{error:?}");
        assert!(text.contains("DB index is out of range"), "{text}");
    }
}

#[tokio::test]
async fn what_listens_speaks_http() {
    let url = listener(async |mut stream: TcpStream| {
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            .await;
        let _ = stream.read(&mut [0; 1024]).await;
    });
    assert_problem(
        &url.await,
        ConnectProblem::NotRedis,
        "does not answer like Redis",
    )
    .await;
}

#[tokio::test]
async fn what_listens_speaks_first() {
    let url = listener(async |mut stream: TcpStream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n").await;
        let _ = stream.read(&mut [0; 1024]).await;
    });
    assert_problem(
        &url.await,
        ConnectProblem::NotRedis,
        "does not answer like Redis",
    )
    .await;
}

#[tokio::test]
async fn what_listens_stays_silent() {
    let url = listener(
        async |mut stream: TcpStream| {
            while let Ok(1..) = stream.read(&mut [0; 1024]).await {}
        },
    );
    let words = "check the address, the network and firewalls";
    assert_problem(&url.await, ConnectProblem::Timeout, words).await;
}

#[tokio::test]
async fn what_listens_closes() {
    let words = "does not answer like Redis";
    let at_once = listener(async |stream: TcpStream| drop(stream)).await;
    assert_problem(&at_once, ConnectProblem::NotRedis, words).await;
    let later = listener(async |mut stream: TcpStream| {
        let _ = stream.read(&mut [0; 1024]).await;
    });
    assert_problem(&later.await, ConnectProblem::NotRedis, words).await;
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn what_listens_speaks_no_tls() {
    let redis = RedisServer::shared();
    let url = format!("rediss://127.0.0.1:{}/", redis.port());
    // Redis waits for the end of what it takes for a command.
    assert_problem(&url, ConnectProblem::Tls, "the TLS handshake failed").await;
    for (_, text) in refused(&url).await {
        assert!(!text.contains("redis://"), "{text}");
    }
}

/// A Redis of this version, as far as it takes to be asked for it.
async fn redis_of_version(version: &'static str) -> String {
    let url = listener(move |mut stream: TcpStream| async move {
        let mut request = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut request).await {
            let request = String::from_utf8_lossy(&request[..length]).to_uppercase();
            let info = format!("# Server\r\nredis_version:{version}\r\naof_enabled:1\r\n");
            let reply = match request.contains("INFO\r\n") && !request.contains("SETINFO") {
                true => format!("${}\r\n{info}\r\n", info.len()),
                false if request.contains("HGET") => "$-1\r\n".to_owned(),
                // One for each request of a pipeline.
                false => "+none\r\n".repeat(request.matches('*').count()),
            };
            let _ = stream.write_all(reply.as_bytes()).await;
        }
    });
    url.await.replace("user:s3cr3t@", "")
}

#[tokio::test]
async fn a_redis_that_is_too_old_is_refused_by_its_version() {
    for (version, is_old) in [
        ("6.2.14", true),
        ("5.0", true),
        ("7.0.0", false),
        ("8.2.1", false),
    ] {
        let url = redis_of_version(version).await;
        let router = Router::new().raw("kind", raw);
        let built = Server::builder().redis(url).build(router).await;
        match built {
            Err(BuildError::Redis(SetupProblem::TooOld(found))) if is_old => {
                assert_eq!(found, version);
                let text = SetupProblem::TooOld(found).to_string();
                assert!(text.contains("needs 7.0 or later"), "{text}");
            }
            Ok(_) if !is_old => {}
            other => panic!("{version}: {other:?}"),
        }
    }
}
