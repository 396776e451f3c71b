use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Wakes the hooks of a server when some may be owed.
#[derive(Default)]
pub(crate) struct HooksOwed(Notify);

impl HooksOwed {
    pub(crate) fn notify(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notified(&self) -> Notified<'_> {
        self.0.notified()
    }
}
