//! Every default and every limit, written once.
//!
//! Where a value comes from another system or from a measurement, its comment says so.

use std::time::Duration;

/// Key prefix of everything that windlass writes to Redis.
pub const PREFIX: &str = "windlass";
/// Where Redis is, unless something else is said.
pub const REDIS_URL: &str = "redis://127.0.0.1/";
/// Queue of a task for which none was named (as in asynq).
pub const QUEUE: &str = "default";
/// Handlers that one server runs at the same time: a constant, so that every deployment behaves alike.
pub const CONCURRENCY: usize = 32;
/// How long one attempt of a task may run (as in asynq).
pub const TASK_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Failed attempts after which a task is archived instead of retried (as in Sidekiq and asynq).
pub const MAX_RETRY: u32 = 25;
/// The longest delay of the default retry formula, and of a retry policy that names no cap, before jitter.
pub const RETRY_DELAY_CAP: Duration = Duration::from_secs(7 * 24 * 3600);
/// The part of its delay by which a retry policy varies it, up or down: what failed together does not
/// come back together.
pub const RETRY_JITTER: f64 = 0.1;
/// How long a lease lasts without a heartbeat.
pub const LEASE: Duration = Duration::from_secs(30);
/// How often a server extends its leases and publishes its record: a third of the lease.
pub const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long past its expiry a lease must be before it counts as lost.
pub const CLOCK_SKEW: Duration = Duration::from_secs(5);
/// How often the recoverer looks for lost leases.
pub const SCAN: Duration = Duration::from_secs(2);
/// Lost leases in a row after which a task is archived (as in Sidekiq Pro).
pub const MAX_LOST: u32 = 3;
/// The highest priority; the lowest and default one is 0.
pub const MAX_PRIORITY: u8 = 9;
/// How much longer than it did a pending task counts as having waited, for each level of its priority.
pub const PRIORITY_HEAD_START: Duration = Duration::from_secs(60);
/// How long a shutdown waits for running handlers before it cancels them (Kubernetes kills at 30 s).
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(20);
/// How long a cancelled handler may go on before it is given up.
pub const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// How long opening a connection to Redis may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long Redis may take to answer one command.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a TCP connection may be silent before the system asks whether its other end still lives:
/// less than the minutes after which routers and firewalls forget a connection.
pub const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
/// How long sent data may stay unacknowledged before the system gives a TCP connection up.
pub const TCP_USER_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a server puts off a task of a kind that it does not know, or whose payload it cannot
/// decode; the real delay is this ± half.
pub const PUT_OFF: Duration = Duration::from_secs(10);
/// How often a task is put off whose payload its servers cannot decode, as one of an unknown kind is:
/// for about 10 min. Then it is archived.
pub const MAX_UNDECODABLE: u32 = 60;
/// The largest encoded payload, in bytes.
pub const MAX_PAYLOAD: usize = 1024 * 1024;
/// The deepest nesting of a payload; deeper ones overflow the 2 MiB stack of a worker thread.
pub const MAX_DEPTH: usize = 64;
/// The longest stored error text, in bytes.
pub const MAX_ERROR: usize = 4 * 1024;
/// The largest stored result, in bytes.
pub const MAX_RESULT: usize = 1024 * 1024;
/// All header names and values of a task together, in bytes.
pub const MAX_HEADERS: usize = 16 * 1024;
/// How many archived tasks a queue keeps (as in asynq).
pub const ARCHIVE_TASKS: usize = 10_000;
/// How long a queue keeps an archived task (as in asynq).
pub const ARCHIVE_AGE: Duration = Duration::from_secs(90 * 24 * 3600);
/// The part of Redis' `maxmemory` that archived and completed tasks may take once it is nearly full.
pub const KEPT_MEMORY: f64 = 0.25;
/// How often a queue's completed and archived tasks are swept.
pub const SWEEP: Duration = Duration::from_secs(10);
/// How many dead-letter hooks a server runs at the same time.
pub const HOOKS_AT_ONCE: usize = 8;
/// How long one dead-letter hook may run.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a stop waits for dead-letter hooks that run before it cuts them off.
pub const HOOK_GRACE: Duration = Duration::from_millis(250);
/// The longest pause before a dead-letter hook that failed is tried again.
pub const HOOK_PAUSE_CAP: Duration = Duration::from_secs(10 * 60);
/// How long a dead-letter hook stays known that no server has any more, beside a lease and the clock skew:
/// longer than a deployment.
pub const HOOK_LAPSE: Duration = Duration::from_secs(5 * 60);
/// How long after its death a task whose dead-letter hook is owed is kept beyond the archive's limits:
/// longer than what the hook writes to should ever be away.
pub const KEEP_FOR_HOOKS: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many events may wait for the function given to `on_event`.
pub const EVENTS: usize = 1000;
/// The longest queue name, kind, id, prefix or lock key, in bytes.
pub const MAX_NAME: usize = 256;

/// Longer spans are surely a mistake, and would lose precision as a sorted set's score.
pub(crate) const FAR: Duration = Duration::from_secs(100 * 366 * 24 * 3600);
/// The most tasks that one script call moves: about 3 ms of Redis' time.
pub(crate) const SCRIPT_TASKS: usize = 200;
/// The most of a script that reads and writes each task's record, which takes several times as long.
pub(crate) const SCRIPT_RECORDS: usize = 100;
/// The most tasks that one enqueue call writes.
pub(crate) const ENQUEUE_TASKS: usize = 500;
/// The most bytes of tasks that one script call carries; a single larger task still goes. What else takes
/// Redis' time, such as the number of headers, is counted as bytes too.
pub(crate) const SCRIPT_BYTES: usize = 1024 * 1024;
/// How full of its `maxmemory` Redis must be before kept tasks go early.
pub(crate) const NEARLY_FULL: f64 = 0.75;
/// The longest pause between two attempts to reach a Redis that is away.
pub(crate) const RECONNECT_CAP: Duration = Duration::from_secs(2);
/// How long one blocking wait for work lasts: bounds what a token eaten by a dead server delays.
pub(crate) const BLOCK: Duration = Duration::from_secs(1);
