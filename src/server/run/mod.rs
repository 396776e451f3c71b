//! Running handlers: from a claimed task to what its handler returned. What becomes of the task then is
//! `settle`'s to decide.

pub(crate) mod attempt;
pub(crate) mod executor;
pub(crate) mod handler;
pub(crate) mod leaks;
pub(crate) mod running;
