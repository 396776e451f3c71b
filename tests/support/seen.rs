//! What handlers tell the test.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{LIMIT, within};

/// A channel from handlers to the test.
pub fn seen<T>() -> (UnboundedSender<T>, Seen<T>) {
    let (sender, receiver) = unbounded_channel();
    (sender, Seen(receiver))
}

pub struct Seen<T>(UnboundedReceiver<T>);

impl<T> Seen<T> {
    /// The next word of a handler, which must come.
    #[track_caller]
    pub fn next(&mut self) -> impl Future<Output = T> {
        let next = within("a handler says something", LIMIT, self.0.recv());
        async { next.await.expect("a handler can still say something") }
    }

    /// The next `n` words.
    pub async fn take(&mut self, n: usize) -> Vec<T> {
        let mut words = Vec::with_capacity(n);
        while words.len() < n {
            words.push(self.next().await);
        }
        words
    }

    /// What was said up to now.
    pub fn so_far(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}
