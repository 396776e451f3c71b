use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::router::handlers::{
    Extractors, Handler, HandlerFuture, HandlerResult, StateType, TaskContext,
};
use crate::router::outcomes::{Failure, Outcome};
use crate::router::routing::blocking;
use crate::task::{RawTask, Task, decode};

/// A handler with its types forgotten, and the states that its extractors take.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) run: Arc<Run>,
    pub(super) required_states: Vec<StateType>,
}

/// Decodes, extracts and calls the handler, up to its first `await`. May panic.
pub(super) type Run =
    dyn Fn(TaskContext, Vec<u8>) -> Result<BoxFuture<'static, Outcome>, Failure> + Send + Sync;

/// How a handler's first argument is made.
pub(super) type Read<T> = fn(&TaskContext, Vec<u8>) -> Result<T, Failure>;

pub(super) fn typed<T: Task>(_: &TaskContext, payload: Vec<u8>) -> Result<T, Failure> {
    decode(&payload).map_err(Failure::undecodable)
}

pub(super) fn raw(context: &TaskContext, payload: Vec<u8>) -> Result<RawTask, Failure> {
    Ok(RawTask::new(context.kind(), payload))
}

impl Route {
    pub(super) fn asynchronous<T, Args, H>(handler: H, read: Read<T>) -> Self
    where
        T: 'static,
        Args: Extractors,
        H: Handler<T, Args, Output: HandlerFuture<Result: HandlerResult> + Send + 'static>,
    {
        let run = move |context: TaskContext, payload: Vec<u8>| {
            let (task, args) = arguments(&context, payload, read)?;
            let future = handler.call(task, args);
            let keeps = context.keeps_result();
            Ok(future.map(move |it| it.into_outcome(keeps)).boxed())
        };
        Self {
            run: Arc::new(run),
            required_states: Args::required_states(),
        }
    }

    pub(super) fn blocking<T, Args, H>(handler: H, read: Read<T>) -> Self
    where
        T: 'static,
        Args: Extractors,
        H: Handler<T, Args, Output: HandlerResult>,
    {
        let handler = Arc::new(handler);
        let run = move |context: TaskContext, payload: Vec<u8>| {
            let handler = Arc::clone(&handler);
            let (kind, slot) = (context.kind().to_owned(), context.slot());
            blocking::on_thread(&kind, slot, move || {
                match arguments(&context, payload, read) {
                    Ok((task, args)) => {
                        let result = handler.call(task, args);
                        result.into_outcome(context.keeps_result())
                    }
                    Err(failure) => Outcome::Failed(failure),
                }
            })
        };
        Self {
            run: Arc::new(run),
            required_states: Args::required_states(),
        }
    }
}

fn arguments<T, Args: Extractors>(
    context: &TaskContext,
    payload: Vec<u8>,
    read: Read<T>,
) -> Result<(T, Args), Failure> {
    let task = read(context, payload)?;
    let args = Args::extract(context).map_err(Failure::from_error)?;
    Ok((task, args))
}
