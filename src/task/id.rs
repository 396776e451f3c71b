use parking_lot::{Mutex, const_mutex};
use ulid::Generator;

static GENERATOR: Mutex<Generator> = const_mutex(Generator::new());

/// A fresh id of 26 characters that sorts after every id this process made before: its first ten
/// characters are the time in ms.
pub(crate) fn generate_id() -> String {
    match GENERATOR.lock().generate() {
        Ok(id) => id.to_string(),
        Err(overflow) => overflow.commit_overflow_increment().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_process_sort_by_age() {
        let ids: Vec<_> = (0..10_000).map(|_| generate_id()).collect();
        assert!(ids.is_sorted() && ids.iter().all(|id| id.len() == 26));
    }
}
