use std::ops::RangeInclusive;

use thiserror::Error;

use crate::defaults::MAX_NAME;

/// A name that cannot be part of a Redis key of windlass.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} {name:?} {problem}")]
#[non_exhaustive]
pub struct NameError {
    /// What was named: `queue`, `kind`, `id`, `prefix`, `lock key` or `header`.
    pub what: &'static str,
    /// The name as given, cut at 64 characters.
    pub name: String,
    /// What is wrong with it.
    pub problem: NameProblem,
}

/// What is wrong with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameProblem {
    /// It is empty, or only white space.
    #[error("is blank: give it at least one visible character")]
    Blank,
    /// It is longer than 256 bytes.
    #[error("is longer than {MAX_NAME} bytes: shorten it")]
    TooLong,
    /// It has a character that means something in keys, or that cannot be seen: then two names could
    /// look the same, or one like nothing.
    #[error("holds {0:?} (U+{code:04X}), which is not allowed here: leave it out", code = u32::from(*.0))]
    Character(char),
}

pub(crate) fn check_queue(name: &str) -> Result<(), NameError> {
    check("queue", name, |c| matches!(c, '{' | '}' | ':'))
}

pub(crate) fn check_prefix(name: &str) -> Result<(), NameError> {
    check("prefix", name, |c| matches!(c, '{' | '}' | ':'))
}

pub(crate) fn check_kind(name: &str) -> Result<(), NameError> {
    check("kind", name, |c| matches!(c, '{' | '}'))
}

pub(crate) fn check_id(name: &str) -> Result<(), NameError> {
    check("id", name, |c| matches!(c, '{' | '}'))
}

pub(crate) fn check_lock_key(name: &str) -> Result<(), NameError> {
    check("lock key", name, |c| matches!(c, '{' | '}'))
}

pub(crate) fn check_header(name: &str) -> Result<(), NameError> {
    check("header", name, |_| false)
}

fn check(what: &'static str, name: &str, special: fn(char) -> bool) -> Result<(), NameError> {
    let problem = if name.trim().is_empty() {
        NameProblem::Blank
    } else if name.len() > MAX_NAME {
        NameProblem::TooLong
    } else if let Some(c) = name.chars().find(|&c| special(c) || is_unseen(c)) {
        NameProblem::Character(c)
    } else {
        return Ok(());
    };
    Err(NameError {
        what,
        name: name.chars().take(64).collect(),
        problem,
    })
}

/// Whether a character is a control, a format or a bidirectional character, a separator of lines or
/// paragraphs, or a letter that is drawn as nothing.
fn is_unseen(c: char) -> bool {
    /// Of Unicode's categories Cf, Zl and Zp (version 16), with what is reserved between them, and the
    /// fillers of Hangul.
    const UNSEEN: [RangeInclusive<char>; 22] = [
        '\u{ad}'..='\u{ad}',
        '\u{600}'..='\u{605}',
        '\u{61c}'..='\u{61c}',
        '\u{6dd}'..='\u{6dd}',
        '\u{70f}'..='\u{70f}',
        '\u{890}'..='\u{891}',
        '\u{8e2}'..='\u{8e2}',
        '\u{115f}'..='\u{1160}',
        '\u{180e}'..='\u{180e}',
        '\u{200b}'..='\u{200f}',
        '\u{2028}'..='\u{202e}',
        '\u{2060}'..='\u{206f}',
        '\u{3164}'..='\u{3164}',
        '\u{feff}'..='\u{feff}',
        '\u{ffa0}'..='\u{ffa0}',
        '\u{fff9}'..='\u{fffb}',
        '\u{110bd}'..='\u{110bd}',
        '\u{110cd}'..='\u{110cd}',
        '\u{13430}'..='\u{1343f}',
        '\u{1bca0}'..='\u{1bca3}',
        '\u{1d173}'..='\u{1d17a}',
        '\u{e0000}'..='\u{e007f}',
    ];
    c.is_control() || (!c.is_ascii() && UNSEEN.iter().any(|range| range.contains(&c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_bad_name_is_named() {
        let long = "x".repeat(MAX_NAME + 1);
        for bad in [
            "",
            " \t",
            long.as_str(),
            "a\nb",
            "a\0b",
            "a\u{85}b",
            // Zero width, byte order mark, soft hyphen, filler: nothing to be seen.
            "\u{200b}",
            "\u{feff}",
            "a\u{ad}b",
            "\u{3164}",
            // Written from right to left, in two lines, or with a tag.
            "a\u{202e}b",
            "a\u{2066}b",
            "a\u{2028}b",
            "a\u{2029}b",
            "a\u{e0041}b",
        ] {
            let checks = [check_queue, check_prefix, check_kind, check_id];
            for check in checks.into_iter().chain([check_lock_key, check_header]) {
                let error = check(bad).expect_err(bad).to_string();
                assert!(error.len() < 200, "{error}");
            }
        }
        for (check, bad) in [
            (check_queue as fn(&str) -> _, "a{b"),
            (check_prefix, "a}b"),
            (check_kind, "a{b"),
            (check_id, "a}b"),
            (check_lock_key, "a{b"),
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        let unseen = check_id("a\u{200b}b")
            .expect_err("it cannot be seen")
            .to_string();
        assert!(unseen.contains("U+200B"), "{unseen}");
        assert!(check_queue("a:b").is_err());
        assert!(check_prefix("a:b").is_err());
    }

    #[test]
    fn names_may_have_spaces_and_letters_of_any_script_and_some_colons() -> Result<(), NameError> {
        check_id("order:17")?;
        check_kind("email:send")?;
        check_queue("critical")?;
        check_queue("high priority")?;
        check_kind("メール:送信")?;
        check_id("\u{1f680}")?;
        check_queue(&"ü".repeat(MAX_NAME / 2))
    }
}
