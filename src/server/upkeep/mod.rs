//! What keeps the queues in order whoever made the mess: due tasks, lost leases, deadlines, dead
//! letters, sweeping. Each part runs by itself, and may race the same part of other servers.

pub(crate) mod forwarder;
mod hook_run;
pub(crate) mod hooks;
pub(crate) mod janitor;
mod kept_memory;
pub(crate) mod queue_watch;
pub(crate) mod recoverer;
