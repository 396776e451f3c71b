use thiserror::Error;

/// Why a server could not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The heartbeat's thread could not be started.
    #[error("the heartbeat's thread could not be started")]
    Heartbeat(#[source] std::io::Error),
    /// The thread for the function given to [`on_event`](crate::server::ServerBuilder::on_event) could not be started.
    #[error("the observer's thread could not be started")]
    Observer(#[source] std::io::Error),
    /// A part of the server panicked. What ran was handed back; start the process anew.
    #[error("the {0} ended unasked, so the server was stopped: restart it, and report this")]
    Died(&'static str),
    /// The signal handlers could not be installed.
    #[error("the signal handlers could not be installed")]
    Signals(#[source] std::io::Error),
}
