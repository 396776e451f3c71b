use std::ops::{Deref, DerefMut};

use crate::user_code::catch::catch;

/// A value of a user's type. Its `Drop` may panic, which goes no further.
pub(crate) struct Contained<T>(Option<T>);

/// Why the value is there.
const THERE: &str = "only `into_inner` and `drop` take the value, and both end it";

impl<T> Contained<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect(THERE)
    }
}

impl<T> Deref for Contained<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(THERE)
    }
}

impl<T> DerefMut for Contained<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(THERE)
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            // Nobody is left to be told. The program's panic hook has printed it.
            let _ = catch(|| drop(value));
        }
    }
}
