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
    /// It holds a character that has a meaning in keys.
    #[error("holds {0:?}, which is not allowed here: leave it out")]
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
    } else if let Some(c) = name.chars().find(|&c| special(c) || c.is_control()) {
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
            "a{b",
            "a}b",
            "a\nb",
            "a\0b",
            "a\u{85}b",
        ] {
            for check in [check_queue, check_prefix, check_kind, check_id] {
                let error = check(bad).expect_err(bad).to_string();
                assert!(error.len() < 200, "{error}");
            }
        }
        assert!(check_queue("a:b").is_err());
        assert!(check_prefix("a:b").is_err());
    }

    #[test]
    fn ids_and_kinds_may_have_colons() -> Result<(), NameError> {
        check_id("order:17")?;
        check_kind("email:send")?;
        check_queue("critical")?;
        check_queue(&"ü".repeat(MAX_NAME / 2))
    }
}
