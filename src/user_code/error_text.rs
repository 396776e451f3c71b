use std::error::Error;
use std::fmt::Write;

use crate::defaults::MAX_ERROR;
use crate::user_code::catch::catch;
use crate::user_code::limited_text::LimitedText;

/// Errors as one text, joined with `: `, at most 4 KiB long. One that says the same as the one
/// before it is left out.
pub(crate) fn error_text<'a>(
    errors: impl IntoIterator<Item = &'a (dyn Error + 'static)>,
) -> String {
    let mut text = LimitedText::new(MAX_ERROR);
    let mut last = None;
    for error in errors {
        let part = describe(error);
        if last.as_ref() == Some(&part) {
            continue;
        }
        let separator = if last.is_some() { ": " } else { "" };
        if write!(text, "{separator}{part}").is_err() {
            break;
        }
        last = Some(part);
    }
    text.into()
}

/// An error and its sources, from the outermost on. Bounded, because a user's `source` may go round
/// in a circle. It may also panic: then the chain ends there.
pub(crate) fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |e: &&'a (dyn Error + 'static)| {
        catch(|| (**e).source()).unwrap_or(None)
    })
    .take(128)
}

/// What one error says for itself. A user's `Display` may fail or panic.
fn describe(error: &dyn Error) -> String {
    let mut text = LimitedText::new(MAX_ERROR);
    let shown = catch(|| {
        // Fails only when the text is full or the `Display` is broken: what is there is kept.
        let _ = write!(text, "{error}");
    });
    match shown {
        Ok(()) => text.into(),
        Err(panicked) => format!("an error that cannot be shown: {panicked}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self.0 {
                "panic" => panic!("no words"),
                "broken" => Err(fmt::Error),
                text => f.write_str(text),
            }
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            match self.0 {
                "no source" => panic!("no source"),
                _ => self.1.as_deref().map(|layer| layer as _),
            }
        }
    }

    fn text(layers: &[&'static str]) -> String {
        let mut layers = layers.iter().rev();
        let last = Layer(layers.next().expect("there is one"), None);
        let error = layers.fold(last, |inner, text| Layer(text, Some(Box::new(inner))));
        error_text(chain(&error))
    }

    #[test]
    fn the_text_is_the_chain_without_repeats() {
        assert_eq!(text(&["a", "b\n\t\0", "c"]), "a: b\n\t\0: c");
        assert_eq!(text(&["a", "a", "b", "a"]), "a: b: a");
        assert_eq!(text(&["", "a"]), ": a");
    }

    #[test]
    fn a_display_or_source_that_panics_or_fails_does_not_hide_the_others() {
        let text = text(&["a", "panic", "broken", "b", "no source", "never seen"]);
        assert!(
            text.starts_with("a: an error that cannot be shown: panicked"),
            "{text}"
        );
        assert!(text.ends_with(": no words: : b: no source"), "{text}");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = |text: String| error_text([&std::io::Error::other(text) as &dyn Error as _]);
        let long = text(format!("x{}", "ü".repeat(MAX_ERROR)));
        assert_eq!(long.len(), MAX_ERROR - 1);
        assert!(long.ends_with('ü'));
        assert_eq!(text("y".repeat(MAX_ERROR)).len(), MAX_ERROR);
    }

    #[test]
    fn a_chain_without_an_end_has_a_text() {
        #[derive(Debug)]
        struct Circle;
        impl fmt::Display for Circle {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("circle")
            }
        }
        impl Error for Circle {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(self)
            }
        }
        assert_eq!(error_text(chain(&Circle)), "circle");
    }
}
