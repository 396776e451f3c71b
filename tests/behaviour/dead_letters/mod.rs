//! Dead-letter hooks.

use std::error::Error;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use windlass::handler::DeadLetter;
use windlass::{Client, Router};

use crate::support::{Calls, LIMIT, Running, Stage, eventually, puppet, task, within};

mod away;
mod blocking;
mod elsewhere;
mod limits;
mod none;
mod reasons;
mod registered;
mod shutdown;
mod trouble;

type Answer = Result<(), Box<dyn Error + Send + Sync>>;

/// The runs of a hook, in their order.
struct Letters(UnboundedReceiver<Letter>);

/// A hook that runs and waits for its answer.
struct Letter {
    letter: DeadLetter,
    answer: oneshot::Sender<Answer>,
}

/// Adds a hook for a kind, whose runs call the test. One that gets no answer hangs.
fn hooked(router: Router, kind: &str) -> (Router, Letters) {
    let (letters, receiver) = unbounded_channel();
    let router = router.on_dead_letter(kind, move |letter| {
        let (answer, answered) = oneshot::channel();
        // A test that has ended hears no more.
        let _ = letters.send(Letter { letter, answer });
        async {
            match answered.await {
                Ok(answer) => answer,
                Err(_) => std::future::pending().await,
            }
        }
    });
    (router, Letters(receiver))
}

/// Starts a server whose tasks of the kind `kind` and their hook call the test.
async fn serve_hooked(stage: &Stage) -> (Running, Calls, Letters) {
    let (router, calls) = puppet();
    let (router, letters) = hooked(router, "kind");
    (stage.serve(router).await, calls, letters)
}

impl Letters {
    #[track_caller]
    fn next(&mut self) -> impl Future<Output = Letter> {
        let next = within("the hook runs", LIMIT, self.0.recv());
        async { next.await.expect("the server still has its router") }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl Letter {
    fn done(self) {
        let _ = self.answer.send(Ok(()));
    }

    fn fail(self, error: &str) {
        let _ = self.answer.send(Err(error.into()));
    }
}

/// Waits until no hook is owed.
async fn until_none_is_owed(stage: &Stage) {
    stage.wait_for_count("hooks", 0).await;
}

/// Waits until a hook is put off, and then lets its time come now.
async fn hurry(stage: &Stage, id: &str) {
    eventually("it is put off", LIMIT, async || {
        let now = stage.now().await;
        let due = stage.score("hooks", id).await;
        due.is_some_and(|due| due > now + 20_000).then_some(())
    })
    .await;
    let now = stage.now().await;
    stage.place("hooks", id, now).await;
}

/// Gives one more task up, and sees that its hook is the first to run: those before it run none.
async fn only_the_next_runs_one(client: &Client, calls: &mut Calls, letters: &mut Letters) {
    client.enqueue(task("x")).id("next").await.unwrap();
    calls.next().await.skip();
    let letter = letters.next().await;
    assert_eq!(letter.letter.id, "next");
    letter.done();
    assert!(letters.is_empty());
}
