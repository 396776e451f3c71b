//! What the proxy, its connections and the test share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Mode;

pub struct Shared {
    /// The port of Redis.
    pub upstream: u16,
    state: Mutex<State>,
}

impl Shared {
    pub fn new(upstream: u16) -> Self {
        let state = State {
            mode: Mode::Pass,
            open: BTreeMap::new(),
            accepted: 0,
            refused: 0,
            dropped: 0,
            fault: None,
        };
        Self {
            upstream,
            state: Mutex::new(state),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct State {
    /// The mode of connections to come.
    pub mode: Mode,
    pub open: BTreeMap<u64, Open>,
    pub accepted: u64,
    pub refused: u64,
    pub dropped: u64,
    pub fault: Option<Fault>,
}

impl State {
    /// Enters a new connection; answers its id and the orders it will get.
    pub fn admit(&mut self) -> (u64, watch::Receiver<Order>) {
        self.accepted += 1;
        let (order, orders) = watch::channel(Order::Run(self.mode));
        let commands = BTreeSet::new();
        let open = Open { order, commands };
        self.open.insert(self.accepted, open);
        (self.accepted, orders)
    }
}

pub struct Open {
    order: watch::Sender<Order>,
    pub commands: BTreeSet<String>,
}

impl Open {
    pub fn set_mode(&self, mode: Mode) {
        self.order.send_if_modified(|order| {
            // A reset that the connection has not seen yet stays.
            let modified = *order != Order::Reset;
            if modified {
                *order = Order::Run(mode);
            }
            modified
        });
    }

    pub fn reset(&self) {
        self.order.send_replace(Order::Reset);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Run(Mode),
    Reset,
}

/// Answers whether a request is the one.
pub type Matcher = Box<dyn FnMut(&[u8]) -> bool + Send>;

/// A loss that the next matching request is to suffer.
pub struct Fault {
    pub loss: Loss,
    pub matches: Matcher,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Request,
    Reply,
}
