//! Many at once, late ones, and none at all.

mod due;
mod expired_leases;
mod idle;
mod lateness;
mod longer_than_lease;
