//! Running handlers: from a claimed task to what its handler returned. What becomes of the task then is
//! `settle`'s to decide.

pub(crate) mod executor;
pub(crate) mod handler;
