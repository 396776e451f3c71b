use std::panic;
use std::sync::Once;

use crate::user_code::catch::see;

/// Adds to the process's panic hook, once, that the place of a panic in a user's code is kept. The
/// hook that was there before is called all the same.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    // A thread that panics must not replace the hook. The next server does it.
    if std::thread::panicking() {
        return;
    }
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            see(panic);
            previous(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::catch;
    use super::*;

    /// Runs the test that calls this once more, in a process of its own, because the hook and
    /// `RUST_BACKTRACE` are one for all threads. Returns what that process printed; `None`: this is it.
    fn child_of_this_test(backtrace: &str) -> Option<String> {
        const CHILD: &str = "WINDLASS_TEST_PANIC_HOOK";
        if std::env::var_os(CHILD).is_some() {
            return None;
        }
        let this = std::thread::current();
        let output = Command::new(std::env::current_exe().expect("there is one"))
            .args([this.name().unwrap_or_default(), "--exact", "--nocapture"])
            .env(CHILD, "1")
            .env("RUST_BACKTRACE", backtrace)
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{output:?}");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(printed.contains("1 passed"), "{printed}");
        Some(printed)
    }

    fn panics() -> String {
        let caught = catch(|| panic!("on purpose"));
        caught.expect_err("it panicked").to_string()
    }

    #[test]
    fn the_programs_hook_is_called_once_for_each_panic() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        if child_of_this_test("0").is_some() {
            return;
        }
        panic::set_hook(Box::new(|_| {
            CALLS.fetch_add(1, Ordering::SeqCst);
        }));
        assert_eq!(panics(), "panicked: on purpose");
        assert_eq!(CALLS.load(Ordering::SeqCst), 1);
        install();
        install();
        let text = panics();
        let start = format!("panicked at {}:", file!());
        assert!(text.starts_with(&start), "{text}");
        assert_eq!(CALLS.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn the_backtrace_is_logged_where_the_program_asks_for_it() {
        let is_logged = |printed: &str| printed.contains("panic_hook::tests::panics");
        match (child_of_this_test("1"), child_of_this_test("0")) {
            (Some(with), Some(without)) => {
                assert!(is_logged(&with), "{with}");
                assert!(!is_logged(&without), "{without}");
            }
            _ => {
                tracing_subscriber::fmt().init();
                // The default hook would print it, too.
                panic::set_hook(Box::new(|_| {}));
                install();
                panics();
            }
        }
    }
}
