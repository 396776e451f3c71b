//! What a failed task keeps as its error: the whole chain, as text, cut at 4 KiB.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use windlass::task::RawTask;
use windlass::{Router, TaskError, defaults};

use crate::support::Stage;

/// What an error says for itself.
type Say = fn(&mut fmt::Formatter<'_>) -> fmt::Result;

struct Odd(Say);

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0)(f)
    }
}

impl fmt::Debug for Odd {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("nobody should ask")
    }
}

impl Error for Odd {}

/// The stored text of a handler's error; the task is tried once and archived, then once more and
/// retried, because both write it.
async fn stored(name: &str, fail: fn() -> anyhow::Error) -> String {
    let stage = Stage::new(name).await;
    let router = Router::new()
        .raw(
            "archived",
            move |_: RawTask| async move { Err::<(), _>(fail()) },
        )
        .raw("retried", move |_: RawTask| async move {
            Err::<(), _>(TaskError::retry_after(fail(), Duration::from_secs(600)))
        });
    let server = stage.serve_with(stage.server(), router).await;
    let client = stage.client().await;
    let archived = client.enqueue(RawTask::new("archived", "x"));
    archived.id("archived").max_retry(0).await.unwrap();
    let retried = client.enqueue(RawTask::new("retried", "x"));
    retried.id("retry").await.unwrap();
    let archived = stage.wait_for_state("archived", "archived").await;
    let retried = stage.wait_for_state("retry", "retry").await;
    assert_eq!(archived["last_error"], retried["last_error"]);
    stage.audit().await;
    server.stop().await;
    archived["last_error"].clone()
}

#[tokio::test]
async fn it_is_the_whole_chain() {
    let text = stored("chain", || {
        let source = "x".parse::<u8>().unwrap_err();
        anyhow::Error::new(source).context("inner").context("outer")
    });
    assert_eq!(text.await, "outer: inner: invalid digit found in string");
}

#[tokio::test]
async fn it_is_cut_between_two_characters() {
    let text = stored("large", || {
        anyhow::anyhow!("ü".repeat(5 << 20)).context("x")
    })
    .await;
    // Of the 4,093 bytes that are left, the last would be half a character.
    assert_eq!(text.len(), defaults::MAX_ERROR - 1);
    assert_eq!(text, "x: ".to_owned() + &"ü".repeat(2_046));
}

#[tokio::test]
async fn it_may_hold_any_character() {
    let text = stored("control", || {
        anyhow::anyhow!("a\0b\r\n\u{1b}[31m\u{7f}\u{85}\u{fffd}")
    });
    assert_eq!(text.await, "a\0b\r\n\u{1b}[31m\u{7f}\u{85}\u{fffd}");
}

#[tokio::test]
async fn an_error_that_cannot_be_shown_is_stored_all_the_same() {
    let text = stored("panics", || {
        anyhow::Error::new(Odd(|_| panic!("hidden"))).context("outer")
    });
    let text = text.await;
    assert!(
        text.starts_with("outer: an error that cannot be shown: panicked at "),
        "{text}"
    );
    assert!(text.ends_with(": hidden"), "{text}");
    let half = stored("fails", || {
        anyhow::Error::new(Odd(|f| f.write_str("half").and(Err(fmt::Error)))).context("outer")
    });
    assert_eq!(half.await, "outer: half");
}

#[tokio::test]
async fn an_error_that_says_nothing_leaves_an_empty_text() {
    assert_eq!(stored("empty", || anyhow::anyhow!("")).await, "");
}

#[tokio::test]
async fn a_circle_of_sources_ends() {
    struct Circle;
    impl fmt::Display for Circle {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("round")
        }
    }
    impl fmt::Debug for Circle {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fmt::Display::fmt(self, f)
        }
    }
    impl Error for Circle {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&Circle)
        }
    }
    // Alike texts in a row are one.
    let text = stored("circle", || anyhow::Error::new(Circle));
    assert_eq!(text.await, "round");
}
