//! Running handlers: from a claimed task to what its handler returned. Knows nothing of how tasks end
//! in Redis; that is `settle`.

pub(crate) mod attempt;
pub(crate) mod executor;
pub(crate) mod handler_slot;
pub(crate) mod leaks;
pub(crate) mod running;
