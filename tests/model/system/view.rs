//! All that Redis holds, in one look.

use crate::keys::{Key, Keys, Value as Found};

/// Locks are given this much more time, in ms, so that they end by the test's clock only.
pub const EXTRA: u64 = 1_000_000_000_000;

/// Answers one text, because taking apart a long reply is slow in a debug build: a line for each key
/// with its name, its type, its time to live in ms, and its values.
const VIEW: &str = r"
local lines = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local value = {}
  if kind == 'hash' then
    value = redis.call('HGETALL', key)
    for i = 2, #value, 2 do
      if #value[i] > 200 then
        value[i] = '<' .. #value[i] .. ' bytes>'
      end
    end
  elseif kind == 'zset' then
    value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'string' then
    value = { redis.call('GET', key) }
  elseif kind == 'list' then
    value = { redis.call('LLEN', key) }
  end
  local ttl = string.format('%.0f', redis.call('PTTL', key))
  lines[#lines + 1] = table.concat({ key, kind, ttl, unpack(value) }, '\t')
end
return table.concat(lines, '\n')
";

pub fn script() -> redis::Script {
    redis::Script::new(VIEW)
}

pub fn parse(view: &str) -> Keys {
    view.lines().map(key).collect()
}

fn key(line: &str) -> (String, Key) {
    let mut parts = line.split('\t');
    let mut next = || parts.next().expect("each line has name, type and time");
    let (name, kind, ttl) = (next(), next(), next());
    let ttl: i64 = ttl.parse().expect("a time is a number");
    let expires_in = u64::try_from(ttl).ok();
    let expires_in = expires_in.map(|ms| match ms {
        ms if ms > EXTRA / 2 => ms.saturating_sub(EXTRA),
        ms => ms,
    });
    let value = value(kind, parts);
    (name.to_owned(), Key { value, expires_in })
}

fn value<'a>(kind: &str, mut parts: impl Iterator<Item = &'a str>) -> Found {
    let mut text = || parts.next().unwrap_or_default();
    match kind {
        "string" => Found::Text(text().to_owned()),
        "list" => Found::List(text().parse().expect("a length is a number")),
        "hash" => Found::Hash(pairs(parts).map(|(f, v)| (f.into(), v.into())).collect()),
        "zset" => Found::Sorted(pairs(parts).map(|(m, s)| (m.into(), whole(s))).collect()),
        other => Found::Other(other.to_owned()),
    }
}

fn pairs<'a>(mut parts: impl Iterator<Item = &'a str>) -> impl Iterator<Item = (&'a str, &'a str)> {
    std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
}

/// All scores are whole numbers.
fn whole(score: &str) -> i64 {
    let number: f64 = score.parse().expect("a score is a number");
    assert_eq!(number.fract(), 0.0, "a score with a fraction: {score}");
    number as i64
}
