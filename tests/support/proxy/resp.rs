//! As much of the Redis protocol as it takes to tell requests apart.

/// The length of the first request in `bytes`, if it is there in full.
pub fn request_length(bytes: &[u8]) -> Option<usize> {
    let (head, mut end) = line(bytes, 0)?;
    let Some(arguments) = number(head, b'*') else {
        return Some(end);
    };
    for _ in 0..arguments {
        let (head, after) = line(bytes, end)?;
        end = after + number(head, b'$')? + 2;
    }
    (end <= bytes.len()).then_some(end)
}

/// The line that starts at `start`, and where the next one starts.
fn line(bytes: &[u8], start: usize) -> Option<(&[u8], usize)> {
    let rest = bytes.get(start..)?;
    let length = rest.iter().position(|&byte| byte == b'\n')?;
    Some((rest[..length].trim_ascii_end(), start + length + 1))
}

fn number(head: &[u8], mark: u8) -> Option<usize> {
    let digits = head.strip_prefix(&[mark])?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
