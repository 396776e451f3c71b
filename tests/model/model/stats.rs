use std::collections::BTreeMap;

/// Totals, and the counts of each UTC day.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub total: BTreeMap<String, u64>,
    pub days: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Counters {
    pub fn add(&mut self, name: String, n: u64, now_ms: u64) {
        if n > 0 {
            let day = self.days.entry(day(now_ms)).or_default();
            *day.entry(name.clone()).or_default() += n;
            *self.total.entry(name).or_default() += n;
        }
    }
}

/// Counted year by year and month by month, unlike in the scripts.
fn day(now_ms: u64) -> String {
    let mut days = now_ms / (24 * 3600 * 1000);
    let mut year = 1970;
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}
