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

    /// In a process of its own, because the hook is one for all threads.
    #[test]
    fn the_hook_of_the_program_is_still_called() {
        const CHILD: &str = "WINDLASS_TEST_PANIC_HOOK";
        if std::env::var_os(CHILD).is_some() {
            return child();
        }
        let this = std::thread::current()
            .name()
            .map(str::to_owned)
            .expect("tests have names");
        let output = Command::new(std::env::current_exe().expect("it is known"))
            .args([&this, "--exact"])
            .env(CHILD, "1")
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).expect("it is text");
        assert!(said.contains("1 passed"), "{said}");
    }

    fn child() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        panic::set_hook(Box::new(|_| {
            CALLS.fetch_add(1, Ordering::SeqCst);
        }));
        for calls in 1..=2 {
            let panicked = catch(|| panic!("{calls}"))
                .expect_err("it is refused")
                .to_string();
            let start = format!("panicked at {}:", file!());
            assert!(panicked.starts_with(&start), "{panicked}");
            assert_eq!(CALLS.load(Ordering::SeqCst), calls);
        }
        // Outside of a catch the place is nobody's, and must not turn up in a later one.
        std::thread::spawn(|| panic!("elsewhere"))
            .join()
            .expect_err("it is refused");
        panic::catch_unwind(|| panic!("here")).expect_err("it is refused");
        let resumed =
            catch(|| panic::resume_unwind(Box::new("resumed"))).expect_err("it is refused");
        assert_eq!(resumed.to_string(), "panicked: resumed");
        assert_eq!(CALLS.load(Ordering::SeqCst), 4);
    }

    #[test]
    fn a_catch_in_a_destructor_does_not_lose_the_place_of_the_panic_that_runs_it() {
        struct Catches;
        impl Drop for Catches {
            fn drop(&mut self) {
                catch(|| panic!("dropped")).expect_err("it is refused");
            }
        }
        let panicked = catch(|| {
            let _catches = Catches;
            panic!("first")
        });
        let line = line!() - 2;
        let text = panicked.expect_err("it is refused").to_string();
        assert!(text.ends_with(&format!(":{line}:13: first")), "{text}");
    }

    #[test]
    fn a_place_that_nobody_asked_for_is_forgotten() {
        let resume = || panic::resume_unwind(Box::new("resumed"));
        catch(|| panic::catch_unwind(|| panic!("caught by a user")).expect_err("it is refused"))
            .expect("no panic came out");
        let resumed = catch(resume).expect_err("it is refused");
        assert_eq!(resumed.to_string(), "panicked: resumed");
    }

    #[test]
    fn an_inner_catch_takes_nothing_from_an_outer_one() {
        let outer = catch(|| {
            let inner = catch(|| panic!("inner")).expect_err("it is refused");
            panic!("outer after {inner}")
        });
        let line = line!() - 2;
        let text = outer.expect_err("it is refused").to_string();
        assert!(text.contains(&format!("{}:{line}:", file!())), "{text}");
        assert!(text.ends_with(": inner"), "{text}");
    }
}
