use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::server::observe::event::Event;
use crate::server::shared::Shared;
use crate::server::shared::config::ObserverFn;
use crate::user_code::catch;

/// Tells the user's function of events. It has a thread of its own, because that function may block,
/// and leases must be extended meanwhile.
pub(crate) struct Observer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) observer: ObserverFn,
    pub(crate) events: mpsc::Receiver<Event>,
    /// Ends it once it has told of everything that came before.
    pub(crate) close: CancellationToken,
}

impl Observer {
    /// Starts the thread; `ended` is dropped when it ends.
    pub(crate) fn start(mut self, ended: DropGuard) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        std::thread::Builder::new()
            .name("windlass-observer".into())
            .spawn(move || {
                while let Some(event) = runtime.block_on(self.next()) {
                    // Outside the runtime, where it may block. Its panic is its own affair.
                    let span = event.span(&self.shared.id);
                    let told = span.in_scope(|| catch(|| (self.observer)(&event)));
                    if let Err(panicked) = told {
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
