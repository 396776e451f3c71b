use std::sync::Arc;

/// The names of the keys that belong to no queue, and the base of those that do.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: Arc<str>,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.into(),
        }
    }

    pub(crate) fn queue(&self, name: &str) -> Queue {
        Queue {
            name: name.into(),
            base: format!("{}:{{{name}}}", self.prefix).into(),
        }
    }

    /// The set of queue names.
    pub(crate) fn queues(&self) -> String {
        format!("{}:queues", self.prefix)
    }

    /// The index of live servers.
    pub(crate) fn servers(&self) -> String {
        format!("{}:servers", self.prefix)
    }

    /// What one server runs.
    pub(crate) fn server(&self, id: &str) -> String {
        format!("{}:server:{id}", self.prefix)
    }
}

/// A queue's name, and the base of its keys: prefix and hash tag, as the scripts take it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Queue {
    pub(crate) name: Arc<str>,
    pub(crate) base: Arc<str>,
}

impl Queue {
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.base)
    }

    pub(crate) fn wake(&self) -> String {
        self.key("wake")
    }
}
