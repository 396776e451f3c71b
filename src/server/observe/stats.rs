use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a server has done since it started.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Counters {
            /// All but `leaked`, which is not counted here.
            pub(crate) fn read(&self) -> Stats {
                Stats { $($name: self.$name.read(),)* }
            }
        }
    };
}

stats! {
    /// Tasks claimed.
    claimed,
    /// Tasks completed, including those that a handler revoked.
    completed,
    /// Attempts that failed, or lost their lease, and are repeated.
    retried,
    /// Tasks given up.
    archived,
    /// Running tasks that somebody had cancelled so that they were deleted.
    deleted,
    /// Attempts that did not succeed and whose place a newer task had taken
    /// ([`Unique::replace`](crate::Unique::replace)): dropped.
    superseded,
    /// Tasks put off: snoozed, or of a kind that this server does not know.
    deferred,
    /// Tasks handed back at shutdown.
    released,
    /// Lost leases of other servers (or earlier ones) that this server took back.
    recovered,
    /// Leases that this server lost while it ran their tasks.
    leases_lost,
    /// Settles that Redis refused, because the lease was not this server's any more.
    settles_refused,
    /// Handlers that ended well after their timeout or deadline, within the cancel grace.
    over_limit,
    /// Handlers that did not return when cancelled and still hold their slots.
    leaked,
    /// Completed and archived tasks removed at the end of their time.
    swept,
    /// Archived and completed tasks removed before their time, because Redis was nearly full: see
    /// [`ServerBuilder::kept_memory`](crate::server::ServerBuilder::kept_memory).
    shed,
    /// Dead-letter hooks that ran to their end.
    hooks_run,
    /// Dead-letter hooks that failed, panicked or took too long, and are tried again.
    hooks_failed,
    /// Dead-letter hooks that were cut off when the server stopped, and are owed as before.
    hooks_cut,
    /// Dead-letter hooks that were owed and will never run, because their tasks left the archive or cannot
    /// be read.
    hooks_dropped,
    /// Panics in handlers and other functions of the user's.
    panics,
    /// Events of which the function given to `on_event` was not told, because it was too slow.
    events_dropped,
}

#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
