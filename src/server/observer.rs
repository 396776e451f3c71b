use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Event;
use super::config::ObserverFn;
use super::shared::Shared;
use crate::router::catch;

/// Tells the user's function of events. It has a thread of its own, because that function may block,
/// and leases must be extended meanwhile.
pub(super) struct Observer {
    pub(super) shared: Arc<Shared>,
    pub(super) observer: ObserverFn,
    pub(super) events: mpsc::Receiver<Event>,
    /// Ends it once it has told of everything that came before.
    pub(super) close: CancellationToken,
}

impl Observer {
    /// Starts the thread; `ended` is dropped when it ends.
    pub(super) fn start(mut self, ended: DropGuard) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        std::thread::Builder::new()
            .name("windlass-observer".into())
            .spawn(move || {
                while let Some(event) = runtime.block_on(self.next()) {
                    // Outside the runtime, where it may block. Its panic is its own affair.
                    if let Err(panicked) = catch(|| (self.observer)(&event)) {
                        self.shared.callback_panicked("on_event", &panicked);
                    }
                }
                drop(ended);
            })
            .map(drop)
    }

    async fn next(&mut self) -> Option<Event> {
        if !self.events.is_closed() {
            tokio::select! {
                biased;
                () = self.close.cancelled() => self.events.close(),
                event = self.events.recv() => return event,
            }
        }
        self.events.recv().await
    }
}
