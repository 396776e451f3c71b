//! The shape of MessagePack, without the types that it stands for.

use crate::defaults::MAX_DEPTH;

/// The beginning of a value.
struct Head {
    /// How many bytes it has, without the values in it.
    len: usize,
    /// How many values are in it.
    values: usize,
    shape: Shape,
}

#[derive(PartialEq)]
enum Shape {
    Scalar,
    Array,
    Map,
    Extension,
}

impl Head {
    /// `None`: the bytes end too early, or are no MessagePack.
    fn of(bytes: &[u8]) -> Option<Self> {
        /// A number in big-endian order, from the second byte on.
        fn number(bytes: &[u8], width: usize) -> Option<usize> {
            let digits = bytes.get(1..=width)?.iter();
            Some(digits.fold(0, |number, digit| number << 8 | usize::from(*digit)))
        }
        let first = *bytes.first()?;
        let low = |bits: u8| usize::from(first & bits);
        let scalar = |len: usize| (len, 0, Shape::Scalar);
        let (len, values, shape) = match first {
            0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => scalar(1),
            0x80..=0x8f => (1, 2 * low(0x0f), Shape::Map),
            0x90..=0x9f => (1, low(0x0f), Shape::Array),
            0xa0..=0xbf => scalar(1 + low(0x1f)),
            0xc1 => return None,
            0xc4 | 0xd9 => scalar(2 + number(bytes, 1)?),
            0xc5 | 0xda => scalar(3 + number(bytes, 2)?),
            0xc6 | 0xdb => scalar(5 + number(bytes, 4)?),
            0xc7..=0xc9 => {
                let width = 1 << (first - 0xc7);
                (2 + width + number(bytes, width)?, 0, Shape::Extension)
            }
            0xca => scalar(5),
            0xcb => scalar(9),
            0xcc..=0xcf => scalar(1 + (1 << (first - 0xcc))),
            0xd0..=0xd3 => scalar(1 + (1 << (first - 0xd0))),
            0xd4..=0xd8 => (2 + (1 << (first - 0xd4)), 0, Shape::Extension),
            0xdc => (3, number(bytes, 2)?, Shape::Array),
            0xdd => (5, number(bytes, 4)?, Shape::Array),
            0xde => (3, 2 * number(bytes, 2)?, Shape::Map),
            0xdf => (5, number(bytes, 4)?.checked_mul(2)?, Shape::Map),
        };
        Some(Self { len, values, shape })
    }
}

/// Whether a value is nested deeper than 64 levels, so that a recursion over it might overflow the
/// stack. What is no MessagePack is not.
pub(super) fn is_too_deep(mut bytes: &[u8]) -> bool {
    // Of each value that is not over yet: how many values in it are still to come.
    let mut open: Vec<usize> = Vec::new();
    while let Some(head) = Head::of(bytes) {
        if head.shape != Shape::Scalar && open.len() + 1 >= MAX_DEPTH {
            return true;
        }
        bytes = bytes.get(head.len..).unwrap_or_default();
        open.push(head.values);
        while let Some(0) = open.last() {
            open.pop();
            match open.last_mut() {
                Some(values) => *values -= 1,
                None => return false,
            }
        }
    }
    false
}

/// A value, which is not too deep, with the entries of each of its maps sorted by their keys: equal
/// values have equal bytes. `None`: it is no MessagePack.
pub(super) fn sorted(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut sorted = Vec::with_capacity(bytes.len());
    let rest = sort(bytes, &mut sorted)?;
    rest.is_empty().then_some(sorted)
}

/// Appends the first value, sorted, and returns what comes after it.
fn sort<'a>(bytes: &'a [u8], sorted: &mut Vec<u8>) -> Option<&'a [u8]> {
    let head = Head::of(bytes)?;
    let (start, mut rest) = bytes.split_at_checked(head.len)?;
    sorted.extend_from_slice(start);
    if head.shape != Shape::Map {
        for _ in 0..head.values {
            rest = sort(rest, sorted)?;
        }
        return Some(rest);
    }
    let mut entries = Vec::new();
    for _ in 0..head.values / 2 {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        rest = sort(rest, &mut key)?;
        rest = sort(rest, &mut value)?;
        entries.push((key, value));
    }
    entries.sort_unstable();
    for (key, value) in entries {
        sorted.extend(key);
        sorted.extend(value);
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmp_serde::to_vec;

    fn nested(depth: usize) -> Vec<u8> {
        let mut bytes = vec![0x91; depth];
        bytes.push(7);
        bytes
    }

    #[test]
    fn depth_counts_lists_maps_and_extensions() {
        assert!(!is_too_deep(&nested(MAX_DEPTH - 1)));
        assert!(is_too_deep(&nested(MAX_DEPTH)));
        let with = |bytes: &[u8]| [&[0x91].repeat(MAX_DEPTH - 1), bytes].concat();
        assert!(is_too_deep(&with(&[0x80])));
        assert!(is_too_deep(&with(&[0xd4, 0, 0])));
        assert!(!is_too_deep(&with(&[0xc0])));
        // Beside one another, as many as you like.
        let wide = [&[0xdc, 0x10, 0x00][..], &[0x91, 0x07].repeat(0x1000)].concat();
        assert!(!is_too_deep(&wide));
    }

    #[test]
    fn bytes_that_are_no_message_pack_are_not_deep_and_have_no_order() {
        for bytes in [
            &b""[..],
            b"\xc1",
            b"\x91",
            b"\xdf\xff\xff\xff\xff",
            b"\xa5abc",
            b"\xc4",
        ] {
            assert!(!is_too_deep(bytes), "{bytes:?}");
            assert_eq!(sorted(bytes), None, "{bytes:?}");
        }
        assert_eq!(sorted(b"\x07\x07"), None);
    }

    #[test]
    fn maps_are_sorted_at_any_depth_and_all_else_stays() -> Result<(), rmp_serde::encode::Error> {
        // A list with a map in a map, twice in another order; and one of each other shape.
        let one = b"\x91\x82\xa1b\x82\x02\xc3\x01\xc2\xa1a\x90";
        let other = b"\x91\x82\xa1a\x90\xa1b\x82\x01\xc2\x02\xc3";
        let rest = to_vec(&(
            (u64::MAX, -1, i64::MIN, 300u16, -300i16, 70_000u32, -70_000),
            (1.5f32, 1.5f64, true, None::<u8>),
            (
                "x".repeat(31),
                "x".repeat(200),
                "x".repeat(300),
                "x".repeat(70_000),
            ),
            (vec![7u8; 20], vec![1u32; 70_000]),
        ))?;
        let bins = b"\x97\xc4\x01x\xc5\x00\x01x\xc6\x00\x00\x00\x01x\xd4\x01x\xc7\x01\x01x\xc8\x00\x01\x01x\xd8\x01xxxxxxxxxxxxxxxx";
        let with = |first: &[u8]| [&[0x93], first, &rest[..], &bins[..]].concat();
        assert_ne!(with(one), with(other));
        assert_eq!(sorted(&with(one)), sorted(&with(other)));
        assert_eq!(sorted(&with(one)).map(|it| it.len()), Some(with(one).len()));
        assert_eq!(sorted(&rest), Some(rest));
        Ok(())
    }
}
