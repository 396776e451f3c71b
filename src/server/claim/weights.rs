/// Divides `slots` by weight: each gets its whole part, and what is left is drawn by weight, so that
/// over many calls the shares are exact also where there are fewer slots than queues.
pub(crate) fn divide(slots: usize, weights: &[u32]) -> Vec<usize> {
    let total: u64 = weights.iter().map(|&w| u64::from(w)).sum();
    if total == 0 {
        return vec![0; weights.len()];
    }
    let mut parts: Vec<usize> = weights
        .iter()
        .map(|&w| (slots as u64 * u64::from(w) / total) as usize)
        .collect();
    let mut fractions: Vec<u64> = weights
        .iter()
        .map(|&w| slots as u64 * u64::from(w) % total)
        .collect();
    let mut left = slots - parts.iter().sum::<usize>();
    while left > 0 {
        let sum: u64 = fractions.iter().sum();
        let mut draw = rand::random_range(0..sum);
        for (part, fraction) in parts.iter_mut().zip(&mut fractions) {
            if draw < *fraction {
                *part += 1;
                *fraction = 0;
                break;
            }
            draw -= *fraction;
        }
        left -= 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_given_by_weight() {
        assert_eq!(divide(10, &[1]), [10]);
        assert_eq!(divide(9, &[6, 3]), [6, 3]);
        assert_eq!(divide(0, &[6, 3]), [0, 0]);
        assert_eq!(divide(5, &[]), [0; 0]);
        for slots in 0..50 {
            assert_eq!(divide(slots, &[6, 3, 1]).iter().sum::<usize>(), slots);
        }
    }

    #[test]
    fn single_slots_are_shared_in_proportion() {
        let mut got = [0; 2];
        for _ in 0..3_000 {
            let parts = divide(1, &[2, 1]);
            got[0] += parts[0];
            got[1] += parts[1];
        }
        // 2,000 expected; 200 is over seven standard deviations.
        assert!((1_800..2_200).contains(&got[0]), "{got:?}");
    }
}
