use std::fmt;
use std::sync::Arc;

/// Who holds a lease: the number of the claim call that made it and the server, as `leases` has them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LeaseHolder(Arc<str>);

impl LeaseHolder {
    pub(crate) fn new(number: u64, server: &str) -> Self {
        Self(format!("{number}@{server}").into())
    }

    /// As a message names it.
    pub(crate) fn parse(number: &str, server: &str) -> Self {
        Self(format!("{number}@{server}").into())
    }

    /// As it stands in Redis; empty where `active` has an id that `leases` lacks.
    pub(in crate::broker) fn found(text: &str) -> Self {
        Self(text.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One task under one lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeasedId {
    pub(crate) id: Arc<str>,
    pub(crate) holder: LeaseHolder,
}
