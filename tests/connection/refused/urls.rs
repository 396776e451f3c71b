//! URLs that cannot be used. What is said of them never holds the password.

use std::fmt::Debug;

use windlass::client::ClientError;
use windlass::error::{RedisConfigError, UrlProblem};
use windlass::server::BuildError;
use windlass::task::RawTask;
use windlass::{Client, Inspector, RedisConfig, Router, Server};

use super::whole;

const SECRET: &str = "s3cr3t";

/// Why a URL is refused, by all who take one.
#[track_caller]
fn problem(url: &str) -> (UrlProblem, String) {
    let error = Client::lazy(url).expect_err(url);
    let ClientError::Config(RedisConfigError::Url { problem, .. }) = &error else {
        panic!("{url}: {error:?}");
    };
    (*problem, whole(&error))
}

#[test]
fn an_unknown_scheme_is_named() {
    for url in [
        "",
        "127.0.0.1:6379",
        "localhost",
        "http://127.0.0.1/",
        "redis:/127.0.0.1",
        "redis//127.0.0.1",
        "REDIS2://127.0.0.1",
        "amqp://user:s3cr3t@127.0.0.1/",
        "user:s3cr3t@127.0.0.1:6379",
        ":s3cr3t@127.0.0.1",
        "s3cr3t@127.0.0.1",
        "redis:s3cr3t@127.0.0.1",
        "redis:/user:s3cr3t@127.0.0.1",
        "http://127.0.0.1/?password=s3cr3t",
    ] {
        let (problem, text) = problem(url);
        assert_eq!(problem, UrlProblem::Scheme, "{url}");
        assert!(text.contains("redis://, rediss:// and unix://"), "{text}");
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn a_malformed_url_is_named() {
    for url in [
        "redis://",
        "redis:///",
        "redis://:port",
        "redis://127.0.0.1:port/",
        "redis://127.0.0.1:99999/",
        "redis://127.0.0.1/database",
        "redis://[::1/",
        "redis://0.0.0.0/",
        "redis://host name/",
        "redis://user:s3cr3t@/",
        "redis://user:s3cr3t@127.0.0.1/x",
        "redis://user:s3cr3t@127.0.0.1:port",
        "redis://user:s3/cr3t@127.0.0.1:6379/",
        "redis://user:%ff@127.0.0.1/",
        "redis://127.0.0.1:port/?pass=s3cr3t",
        "unix://relative?pass=s3cr3t",
        "unix:///socket?db=x&pass=s3cr3t",
        "unix:///socket?db=x&user=u&pass=s3cr3t#fragment",
        "redis://user:s3cr3t",
        "redis://127.0.0.1/0/s3cr3t",
        "redis://127.0.0.1;password=s3cr3t",
        "redis://user:12?s3cr3t@127.0.0.1/",
        "redis://127.0.0.1/?protocol=3",
    ] {
        let (problem, text) = problem(url);
        assert_eq!(problem, UrlProblem::Malformed, "{url}");
        assert!(
            text.contains("redis://user:password@host:port/db"),
            "{text}"
        );
        assert!(!text.contains(SECRET) && !text.contains("cr3t"), "{text}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_without_its_feature_is_named() {
    let (problem, text) = problem("rediss://user:s3cr3t@127.0.0.1/");
    assert_eq!(problem, UrlProblem::TlsFeature);
    assert!(text.contains("windlass' feature `tls`"), "{text}");
    assert!(!text.contains(SECRET), "{text}");
}

async fn raw(_: RawTask) -> Result<(), String> {
    Ok(())
}

#[tokio::test]
async fn servers_and_inspectors_refuse_them_alike() {
    let url = "http://user:s3cr3t@127.0.0.1/";
    let router = Router::new().raw("kind", raw);
    let error = Server::builder()
        .redis(url)
        .build(router)
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        BuildError::Config(RedisConfigError::Url {
            problem: UrlProblem::Scheme,
            ..
        })
    ));
    assert!(!whole(&error).contains(SECRET), "{error}");
    let error = Inspector::connect(url).await.map(drop).unwrap_err();
    assert!(!whole(&error).contains(SECRET), "{error}");
    assert!(whole(&error).contains("http://…"), "{error}");
}

#[tokio::test]
async fn nothing_that_can_be_printed_shows_a_password() {
    let url = "redis://user:s3cr3t@127.0.0.1:1/";
    let builder = Client::builder().redis(url);
    let server = Server::builder().redis(url);
    let client = builder.clone().lazy().unwrap();
    let error = client.enqueue(RawTask::new("kind", "x")).await.unwrap_err();
    let printed: [&dyn Debug; 7] = [
        &RedisConfig::new(url),
        &client.inspector(),
        &builder,
        &client,
        &server,
        &error,
        &client.enqueue(RawTask::new("k", "x")),
    ];
    for printed in printed {
        assert!(!format!("{printed:?}").contains(SECRET), "{printed:?}");
    }
    assert!(!whole(&error).contains(SECRET), "{error}");
}
