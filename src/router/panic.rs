use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use thiserror::Error;

/// A panic of a user's code: what it said, and where.
#[derive(Debug, Error)]
#[error("panicked{}: {message}", At(.place))]
pub(crate) struct Panicked {
    message: String,
    /// `file:line:column`; unknown if the program replaced the panic hook, or resumed a panic.
    place: Option<String>,
}

/// Runs a user's code and turns its panic into a value.
pub(crate) fn catch<R>(code: impl FnOnce() -> R) -> Result<R, Panicked> {
    install_hook();
    CATCHES.set(CATCHES.get() + 1);
    // This catch may be in a destructor that an outer panic runs.
    let outer = swap_place(None);
    // Nothing of ours is left half changed: all that `code` has is moved into it, or is thrown away
    // by the caller after a panic.
    let result = panic::catch_unwind(AssertUnwindSafe(code));
    CATCHES.set(CATCHES.get() - 1);
    let place = swap_place(outer);
    result.map_err(|payload| Panicked {
        message: message(payload),
        place,
    })
}

thread_local! {
    /// How many catches this thread is in.
    static CATCHES: Cell<usize> = const { Cell::new(0) };
    /// Where the last panic in a catch happened: only the hook learns it.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Adds to the program's panic hook that the place of a panic is noted. The hook that was there is
/// called all the same.
fn install_hook() {
    static HOOK: Once = Once::new();
    // Replacing the hook is not allowed during a panic: then a later catch does it.
    if HOOK.is_completed() || std::thread::panicking() {
        return;
    }
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            note_place(info);
            previous(info);
        }));
    });
}

fn note_place(info: &PanicHookInfo<'_>) {
    if CATCHES.get() > 0
        && let Some(place) = info.location()
    {
        swap_place(Some(place.to_string()));
    }
}

fn swap_place(place: Option<String>) -> Option<String> {
    // A thread that is ending has no thread-locals any more.
    PLACE.try_with(|last| last.replace(place)).ok().flatten()
}

fn message(payload: Box<dyn Any + Send>) -> String {
    let message = match payload.downcast_ref::<&str>() {
        Some(text) => (*text).to_owned(),
        None => match payload.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => "a panic without a message".to_owned(),
        },
    };
    // What was thrown may itself panic when it is dropped.
    if let Err(again) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
    message
}

struct At<'a>(&'a Option<String>);

impl std::fmt::Display for At<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(place) => write!(f, " at {place}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// What is caught of a function that panics.
    fn caught<T: std::fmt::Debug>(function: impl FnOnce() -> T) -> String {
        catch(function).expect_err("it panicked").to_string()
    }

    /// In a process of its own, because the hook is one for all threads.
    #[test]
    fn the_hook_of_the_program_is_still_called() -> std::io::Result<()> {
        const CHILD: &str = "WINDLASS_TEST_PANIC_HOOK";
        if std::env::var_os(CHILD).is_some() {
            child();
            return Ok(());
        }
        let this = std::thread::current();
        let output = Command::new(std::env::current_exe()?)
            .args([this.name().unwrap_or_default(), "--exact"])
            .env(CHILD, "1")
            .output()?;
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("1 passed"), "{said}");
        Ok(())
    }

    fn child() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        panic::set_hook(Box::new(|_| {
            CALLS.fetch_add(1, Ordering::SeqCst);
        }));
        for calls in 1..=2 {
            let panicked = caught(|| panic!("{calls}"));
            let start = format!("panicked at {}:", file!());
            assert!(panicked.starts_with(&start), "{panicked}");
            assert_eq!(CALLS.load(Ordering::SeqCst), calls);
        }
        // Outside of a catch the place is nobody's, and must not turn up in a later one.
        assert!(std::thread::spawn(|| panic!("elsewhere")).join().is_err());
        assert!(panic::catch_unwind(|| panic!("here")).is_err());
        let resumed = caught(|| panic::resume_unwind(Box::new("resumed")));
        assert_eq!(resumed, "panicked: resumed");
        assert_eq!(CALLS.load(Ordering::SeqCst), 4);
    }

    #[test]
    fn a_catch_in_a_destructor_does_not_lose_the_place_of_the_panic_that_runs_it() {
        struct Catches;
        impl Drop for Catches {
            fn drop(&mut self) {
                caught(|| panic!("dropped"));
            }
        }
        let text = caught(|| {
            let _catches = Catches;
            panic!("first")
        });
        let line = line!() - 2;
        assert!(text.ends_with(&format!(":{line}:13: first")), "{text}");
    }

    #[test]
    fn a_place_that_nobody_asked_for_is_forgotten() {
        let resume = || panic::resume_unwind(Box::new("resumed"));
        let inner = catch(|| panic::catch_unwind(|| panic!("caught by a user")).is_err());
        assert!(inner.is_ok_and(|panicked| panicked));
        let resumed = caught(resume);
        assert_eq!(resumed, "panicked: resumed");
    }

    #[test]
    fn an_inner_catch_takes_nothing_from_an_outer_one() {
        let text = caught(|| {
            let inner = caught(|| panic!("inner"));
            panic!("outer after {inner}")
        });
        let line = line!() - 2;
        assert!(text.contains(&format!("{}:{line}:", file!())), "{text}");
        assert!(text.ends_with(": inner"), "{text}");
    }
}
