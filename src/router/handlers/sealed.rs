/// Keeps a trait from being implemented outside of windlass, so that it can change.
pub trait Sealed<T> {}
