use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use redis::{Cmd, Value};
use tokio::task::AbortHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::broker::connection::endpoint::Endpoint;
use crate::broker::connection::error::{BrokerError, Fault};
use crate::broker::connection::live::Live;
use crate::broker::connection::query::Query;

/// One held connection that heals: an error after which it cannot be trusted drops it, and the next
/// command connects again. Commands sent at the same time share it, in one pipeline.
///
/// It does not repeat: how patient to be is its user's business. Clones share the connection.
#[derive(Debug, Clone)]
pub(crate) struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    endpoint: Arc<Endpoint>,
    response_timeout: Duration,
    held: Mutex<Held>,
}

type Connected = Result<Arc<Live>, BrokerError>;

#[derive(Debug, Default)]
struct Held {
    live: Option<Arc<Live>>,
    /// It leads to a Redis that refuses every call, such as a replica: to be replaced, at the pace at
    /// which that may be tried.
    is_useless: bool,
    attempt: Option<Attempt>,
    /// Why the last attempt failed.
    failed: Option<BrokerError>,
}

/// A connection that is being made.
#[derive(Debug)]
struct Attempt {
    /// When it ends at the latest.
    until: Instant,
    task: AbortHandle,
    outcome: Outcome,
}

type Outcome = Shared<BoxFuture<'static, Connected>>;

/// How much longer than a connection may take who waits for it waits, to be told why there is none.
const MARGIN: Duration = Duration::from_millis(100);

impl Link {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        let response_timeout = endpoint.command_timeout();
        Self::with_response_timeout(endpoint, response_timeout)
    }

    pub(crate) fn with_response_timeout(
        endpoint: Arc<Endpoint>,
        response_timeout: Duration,
    ) -> Self {
        Self(Arc::new(Inner {
            endpoint,
            response_timeout,
            held: Mutex::default(),
        }))
    }

    /// How long a command waits for its reply.
    pub(crate) fn response_timeout(&self) -> Duration {
        self.0.response_timeout
    }

    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.0.endpoint
    }

    /// Connects if it is not connected, and makes sure that a connection that was quiet still lives.
    /// Each command does so by itself; a call that must not be repeated, and is made of several
    /// commands, does it before them.
    pub(crate) async fn ready(&self) -> Result<(), BrokerError> {
        self.live().await.map(drop)
    }

    /// Whether a command can go at once, without a look whether the connection lives.
    pub(crate) fn is_trusted(&self) -> bool {
        let held = self.0.held.lock();
        !held.is_useless && held.live.as_ref().is_some_and(|live| live.is_trusted())
    }

    /// Has the next command make sure first that the connection lives.
    pub(crate) fn doubt(&self) {
        if let Some(live) = &self.0.held.lock().live {
            live.doubt();
        }
    }

    async fn live(&self) -> Connected {
        let inner = &self.0;
        let live = async {
            if let Some(live) = inner.take_up() {
                if live.is_trusted() || live.gives_a_sign().await {
                    return Ok(live);
                }
                inner.drop_live(&live);
            }
            inner.attempt().await
        };
        let limit = inner.endpoint.connect_timeout() + MARGIN;
        match tokio::time::timeout(limit, live).await {
            Ok(live) => live,
            // Why it failed before says more than that it is late again.
            Err(elapsed) => {
                let failed = inner.held.lock().failed.clone();
                Err(failed.unwrap_or_else(|| inner.endpoint.too_late(elapsed)))
            }
        }
    }
}

impl Inner {
    /// The connection that there is, unless it is to be replaced now.
    fn take_up(self: &Arc<Self>) -> Option<Arc<Live>> {
        let mut held = self.held.lock();
        held.live.take_if(|live| live.has_ended());
        if held.is_useless && held.live.is_some() && self.endpoint.pace.may_go_on() {
            held.live = None;
            // Whoever finds no connection joins it.
            drop(self.begin(&mut held, Duration::ZERO));
        }
        held.live.clone()
    }

    /// The one attempt to connect that all wait for.
    fn attempt(self: &Arc<Self>) -> Outcome {
        let mut held = self.held.lock();
        match &held.attempt {
            // Finished and still here: it panicked, or its runtime has ended.
            Some(it) if !it.task.is_finished() && Instant::now() < it.until => it.outcome.clone(),
            _ => self.begin(&mut held, self.endpoint.pace.pause()),
        }
    }

    /// A task of its own, because who begins it may be a future that is kept and not polled any more.
    fn begin(self: &Arc<Self>, held: &mut Held, pause: Duration) -> Outcome {
        let connect = AbortOnDropHandle::new(tokio::spawn(self.clone().connect(pause)));
        let task = connect.abort_handle();
        let outcome = connect.map(|ended| ended.unwrap_or(Err(BrokerError::NotSent)));
        let outcome = outcome.boxed().shared();
        held.attempt = Some(Attempt {
            // What takes longer is on a runtime that nobody drives any more.
            until: Instant::now() + pause + self.endpoint.connect_timeout() + 5 * MARGIN,
            task,
            outcome: outcome.clone(),
        });
        outcome
    }

    async fn connect(self: Arc<Self>, pause: Duration) -> Connected {
        tokio::time::sleep(pause).await;
        let connected = self.endpoint.connect(self.response_timeout).await;
        let mut held = self.held.lock();
        held.attempt = None;
        match connected {
            Ok(live) => {
                let live = Arc::new(live);
                held.live = Some(live.clone());
                held.is_useless = false;
                held.failed = None;
                Ok(live)
            }
            Err(error) => {
                self.endpoint.pace.failed();
                held.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Sees to it that the next command gets another connection.
    fn drop_live(&self, live: &Arc<Live>) {
        if !live.has_served() {
            self.endpoint.pace.failed();
        }
        self.held
            .lock()
            .live
            .take_if(|held| Arc::ptr_eq(held, live));
    }

    fn replace_live(&self, live: &Arc<Live>) {
        let mut held = self.held.lock();
        if held
            .live
            .as_ref()
            .is_some_and(|held| Arc::ptr_eq(held, live))
        {
            held.is_useless = true;
        }
    }
}

impl Query for Link {
    async fn query(&self, command: &Cmd) -> Result<Value, BrokerError> {
        let live = self.live().await?;
        let reply = live.send(command).await;
        reply.map_err(|error| {
            let error = BrokerError::classify(error, self.0.response_timeout);
            match error.fault() {
                // It can be asked, and it may become what it was.
                Fault::Reconnect if error.is_answer() => self.0.replace_live(&live),
                Fault::Reconnect => self.0.drop_live(&live),
                _ => {}
            }
            error
        })
    }
}
