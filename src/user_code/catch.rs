use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::Cell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};

use thiserror::Error;

/// A panic of a user's code: what it said, and where it happened.
#[derive(Debug, Error)]
#[error("panicked{}: {message}", At(.place))]
pub(crate) struct Panicked {
    message: String,
    /// `file:line:column`. `None` without the panic hook, and for a panic that was resumed, of which
    /// no hook hears.
    place: Option<String>,
}

impl Panicked {
    fn new(message: String, sighting: Option<Box<Sighting>>) -> Self {
        let Some(sighting) = sighting else {
            let place = None;
            return Self { message, place };
        };
        let place = Some(sighting.place);
        let panicked = Self { message, place };
        if sighting.backtrace.status() == BacktraceStatus::Captured {
            tracing::error!(backtrace = %sighting.backtrace, "{panicked}");
        }
        panicked
    }
}

/// What only the panic hook can see of a panic.
struct Sighting {
    place: String,
    backtrace: Backtrace,
}

/// Runs a user's code and turns its panic into a value. Logs the stack at the panic, if the program
/// asks for it with `RUST_BACKTRACE`.
pub(crate) fn catch<R>(code: impl FnOnce() -> R) -> Result<R, Panicked> {
    // A destructor that an outer panic runs may catch one of its own. So the outer catch's state is
    // kept until this one has ended.
    let outer = replace(Catching::Yes);
    // Nothing of ours is left half changed: `code` owns all that it uses, or its caller throws it
    // away after a panic.
    let result = panic::catch_unwind(AssertUnwindSafe(code));
    let sighting = match replace(outer) {
        Catching::Seen(sighting) => Some(sighting),
        _ => None,
    };
    result.map_err(|payload| Panicked::new(message(payload), sighting))
}

/// Whether a thread is in a catch, and what the hook saw of the last panic in it.
#[derive(Default)]
enum Catching {
    #[default]
    No,
    Yes,
    Seen(Box<Sighting>),
}

thread_local! {
    static CATCHING: Cell<Catching> = const { Cell::new(Catching::No) };
}

fn replace(catching: Catching) -> Catching {
    // A thread that is ending has no thread-locals any more: then no panic is seen.
    let replaced = CATCHING.try_with(|cell| cell.replace(catching));
    replaced.unwrap_or_default()
}

/// Keeps what the panic hook sees, for the catch that the panic is in. Of other panics nothing is
/// kept, so that a later catch does not take them for its own.
pub(super) fn see(panic: &PanicHookInfo<'_>) {
    let catching = replace(Catching::No);
    replace(match (catching, panic.location()) {
        (Catching::No, _) => Catching::No,
        (_, None) => Catching::Yes,
        (_, Some(place)) => Catching::Seen(Box::new(Sighting {
            place: place.to_string(),
            backtrace: Backtrace::capture(),
        })),
    });
}

fn message(payload: Box<dyn Any + Send>) -> String {
    let message = match payload.downcast_ref::<&str>() {
        Some(text) => (*text).to_owned(),
        None => match payload.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => "a panic without a message".to_owned(),
        },
    };
    // The payload may itself panic when it is dropped, and so may the payload of that panic.
    if let Err(again) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
    message
}

struct At<'a>(&'a Option<String>);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(place) => write!(f, " at {place}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::install_panic_hook;
    use super::*;

    /// What is caught of a function that panics.
    fn caught<T: fmt::Debug>(function: impl FnOnce() -> T) -> String {
        install_panic_hook();
        catch(function).expect_err("it panicked").to_string()
    }

    #[test]
    fn a_panic_outside_of_a_catch_is_not_taken_for_one_within() {
        let resume = || panic::resume_unwind(Box::new("resumed"));
        assert!(std::thread::spawn(|| panic!("elsewhere")).join().is_err());
        assert!(panic::catch_unwind(|| panic!("here")).is_err());
        assert_eq!(caught(resume), "panicked: resumed");
        let inner = catch(|| panic::catch_unwind(|| panic!("caught by a user")).is_err());
        assert!(inner.is_ok_and(|panicked| panicked));
        assert_eq!(caught(resume), "panicked: resumed");
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
    fn an_inner_catch_takes_nothing_from_an_outer_one() {
        let text = caught(|| {
            let inner = caught(|| panic!("inner"));
            panic!("outer after {inner}")
        });
        let line = line!() - 2;
        assert!(text.contains(&format!("{}:{line}:", file!())), "{text}");
        assert!(text.ends_with(": inner"), "{text}");
    }

    #[test]
    fn a_payload_that_panics_when_it_is_dropped_goes_no_further() {
        struct Bomb(u32);
        impl Drop for Bomb {
            fn drop(&mut self) {
                if self.0 > 0 {
                    panic::panic_any(Bomb(self.0 - 1));
                }
            }
        }
        let text = caught(|| panic::panic_any(Bomb(1)));
        assert!(text.ends_with(": a panic without a message"), "{text}");
    }
}
