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

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
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

    /// Matches the record of every task of every queue, for SCAN.
    pub(crate) fn records_pattern(&self) -> String {
        let mut pattern = String::new();
        for c in self.prefix.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '^' | '\\') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern + ":{*}:t:*"
    }

    /// Queue and id of a record's key.
    pub(crate) fn parse_record(&self, key: &str) -> Option<(String, String)> {
        let rest = key.strip_prefix(&*self.prefix)?.strip_prefix(":{")?;
        let (queue, id) = rest.split_once("}:t:")?;
        Some((queue.to_owned(), id.to_owned()))
    }

    /// The channel on which a server hears of cancels.
    pub(crate) fn control(&self, server: &str) -> String {
        format!("{}:control:{server}", self.prefix)
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

    /// The channel on which the ends of tasks are told that somebody waits for.
    pub(crate) fn ended(&self) -> String {
        self.key("ended")
    }

    pub(crate) fn wake(&self) -> String {
        self.key("wake")
    }
}
