//! A handler that does what the test says, when the test says it.

use std::error::Error;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use windlass::handler::CancelReason;
use windlass::task::RawTask;
use windlass::{Router, TaskContext, TaskError};

use super::{LIMIT, Running, Stage, within};

type Answer = Result<String, Box<dyn Error + Send + Sync>>;

/// The calls of a handler, in their order.
pub struct Calls(UnboundedReceiver<Call>);

/// A handler that was called and waits for its answer.
pub struct Call {
    pub task: RawTask,
    pub context: TaskContext,
    answer: oneshot::Sender<Answer>,
}

/// A router whose tasks of the kind `kind` call the test.
pub fn puppet() -> (Router, Calls) {
    puppet_for(Router::new(), "kind")
}

/// Adds a kind whose tasks call the test.
pub fn puppet_for(router: Router, kind: &str) -> (Router, Calls) {
    let (calls, receiver) = unbounded_channel();
    let handler = move |task, context| call(calls.clone(), task, context);
    (router.raw(kind, handler), Calls(receiver))
}

impl Stage {
    /// Starts a server whose tasks of the kind `kind` call the test.
    pub async fn serve_puppet(&self) -> (Running, Calls) {
        let (router, calls) = puppet();
        (self.serve(router).await, calls)
    }
}

async fn call(calls: UnboundedSender<Call>, task: RawTask, context: TaskContext) -> Answer {
    let (answer, answered) = oneshot::channel();
    let call = Call {
        task,
        context,
        answer,
    };
    // A test that has ended hears no more.
    let _ = calls.send(call);
    match answered.await {
        Ok(answer) => answer,
        Err(_) => std::future::pending().await,
    }
}

impl Calls {
    /// The next call, which must come.
    #[track_caller]
    pub fn next(&mut self) -> impl Future<Output = Call> {
        let next = within("the handler is called", LIMIT, self.0.recv());
        async { next.await.expect("the server still has its router") }
    }

    /// Whether no call waits to be looked at.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many calls wait to be looked at.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Answers every call to come with success.
    pub fn complete_all(mut self) {
        tokio::spawn(async move {
            while let Some(call) = self.0.recv().await {
                call.complete();
            }
        });
    }
}

impl Call {
    pub fn id(&self) -> &str {
        self.context.id()
    }

    pub fn payload(&self) -> String {
        String::from_utf8_lossy(&self.task.payload).into_owned()
    }

    pub fn complete(self) {
        self.complete_with("done");
    }

    pub fn complete_with(self, result: &str) {
        let _ = self.answer.send(Ok(result.to_owned()));
    }

    /// Fails: with a verdict, or with a plain error that has none.
    pub fn fail(self, error: impl Into<Box<dyn Error + Send + Sync>>) {
        let _ = self.answer.send(Err(error.into()));
    }

    pub fn skip(self) {
        self.fail(TaskError::skip_retry("skipped"));
    }

    pub fn revoke(self) {
        self.fail(TaskError::revoke("revoked"));
    }

    pub fn snooze(self, delay: Duration) {
        self.fail(TaskError::snooze(delay));
    }

    pub fn retry_after(self, delay: Duration) {
        self.fail(TaskError::retry_after("failed", delay));
    }

    /// Waits until the handler is told to end; answers why.
    #[track_caller]
    pub fn cancelled(&self) -> impl Future<Output = CancelReason> {
        let cancelled = within("the handler is cancelled", LIMIT, self.context.cancelled());
        async {
            cancelled.await;
            self.context.cancel_reason().expect("it says why")
        }
    }
}
