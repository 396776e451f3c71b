use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::PayloadError;
use crate::defaults::MAX_DEPTH;

/// Packs a value as MessagePack with field names, and checks that [`decode`] would take it.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, PayloadError> {
    let bytes = rmp_serde::to_vec_named(value).map_err(|e| PayloadError::Encode(Box::new(e)))?;
    decode::<IgnoredAny>(&bytes)?;
    Ok(bytes)
}

/// Unpacks a value. Nesting is bounded, because a deep one would overflow the stack and abort the
/// process; bytes left over are an error, because they mean that the payload is something else.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, PayloadError> {
    let mut deserializer = rmp_serde::Deserializer::new(bytes);
    deserializer.set_max_depth(MAX_DEPTH);
    let value = T::deserialize(&mut deserializer).map_err(|e| match e {
        rmp_serde::decode::Error::DepthLimitExceeded => PayloadError::TooDeep,
        e => PayloadError::Decode(Box::new(e)),
    })?;
    match deserializer.get_ref().len() {
        0 => Ok(value),
        trailing => Err(PayloadError::Trailing(trailing)),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Lists(Vec<Lists>);

    fn lists(depth: usize) -> Lists {
        (0..depth).fold(Lists(vec![]), |inner, _| Lists(vec![inner]))
    }

    #[test]
    fn values_come_back_as_they_were() -> Result<(), PayloadError> {
        let pair = ((1u64 << 53) + 1, "ü\0".to_owned());
        assert_eq!(decode::<(u64, String)>(&encode(&pair)?)?, pair);
        assert_eq!(decode::<Lists>(&encode(&lists(3))?)?, lists(3));
        Ok(())
    }

    #[test]
    fn deep_values_are_refused_on_both_sides() {
        assert!(encode(&lists(MAX_DEPTH - 2)).is_ok());
        assert!(matches!(
            encode(&lists(MAX_DEPTH + 1)),
            Err(PayloadError::TooDeep)
        ));
        let hostile = vec![0x91; 1_000_000];
        assert!(matches!(
            decode::<Lists>(&hostile),
            Err(PayloadError::TooDeep)
        ));
    }

    #[test]
    fn trailing_bytes_and_garbage_are_refused() -> Result<(), PayloadError> {
        let mut bytes = encode(&7u8)?;
        bytes.push(0);
        assert!(matches!(
            decode::<u8>(&bytes),
            Err(PayloadError::Trailing(1))
        ));
        assert!(matches!(
            decode::<u8>(&[0xc1]),
            Err(PayloadError::Decode(_))
        ));
        assert!(matches!(decode::<u8>(&[]), Err(PayloadError::Decode(_))));
        Ok(())
    }
}
