use thiserror::Error;

use crate::server::settle::decide::LEASE_EXPIRED;

/// The error of an attempt whose lease was lost, as the function given to
/// [`is_failure`](crate::server::ServerBuilder::is_failure) sees it: `error.is::<LeaseExpired>()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{LEASE_EXPIRED}")]
#[non_exhaustive]
pub struct LeaseExpired;
