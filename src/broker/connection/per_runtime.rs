use std::collections::HashMap;
use std::fmt;
use std::future::pending;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::{Handle, Id};
use tokio_util::task::AbortOnDropHandle;

/// What each runtime has of its own. A connection is driven by the runtime that it was made on; a
/// runtime that stands still, because a handler blocks it, or because nobody drives it any more, must
/// not hold up the calls of others.
pub(crate) struct PerRuntime<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    made: Mutex<HashMap<Id, Made<T>>>,
}

struct Made<T> {
    /// Ends with the runtime.
    runtime: AbortOnDropHandle<()>,
    value: Arc<T>,
}

impl<T> PerRuntime<T> {
    pub(crate) fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self {
            make: Box::new(make),
            made: Mutex::default(),
        }
    }

    /// That of the runtime that this is called on.
    pub(crate) fn here(&self) -> Arc<T> {
        let runtime = Handle::current();
        let mut made = self.made.lock();
        if let Some(made) = made.get(&runtime.id())
            // A later runtime may have the id of one that has ended.
            && !made.runtime.is_finished()
        {
            return made.value.clone();
        }
        made.retain(|_, made| !made.runtime.is_finished());
        let value = Arc::new((self.make)());
        let here = Made {
            runtime: AbortOnDropHandle::new(runtime.spawn(pending())),
            value: value.clone(),
        };
        made.insert(runtime.id(), here);
        value
    }
}

impl<T> fmt::Debug for PerRuntime<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerRuntime").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    fn runtime() -> Runtime {
        Builder::new_current_thread().build().expect("it can start")
    }

    #[test]
    fn each_runtime_has_one_until_it_ends() {
        let per_runtime = PerRuntime::new(|| ());
        let (first, second) = (runtime(), runtime());
        let here = |runtime: &Runtime| runtime.block_on(async { per_runtime.here() });
        let (one, two) = (here(&first), here(&second));
        assert!(Arc::ptr_eq(&one, &here(&first)) && Arc::ptr_eq(&two, &here(&second)));
        assert!(!Arc::ptr_eq(&one, &two));
        drop(first);
        here(&runtime());
        assert!(
            !per_runtime
                .made
                .lock()
                .values()
                .any(|made| Arc::ptr_eq(&made.value, &one))
        );
        assert!(Arc::ptr_eq(&two, &here(&second)));
    }
}
