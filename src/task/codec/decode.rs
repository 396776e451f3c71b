use rmp_serde::Deserializer;
use serde::de::DeserializeOwned;

use crate::task::codec::Form;
use crate::task::codec::message_pack::is_too_deep;
use crate::task::invalid::PayloadError;

/// A value from its bytes, in whichever form they are. Nesting is bounded, because a deep one would
/// overflow the stack and abort the process. Bytes after the value are an error, because they mean
/// that all of it is something else.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, PayloadError> {
    if is_too_deep(bytes) {
        return Err(PayloadError::TooDeep);
    }
    decode_as(Form::Binary, bytes).or_else(|error| {
        // Nearly all values are in the binary form. So where neither fits, its error is shown.
        decode_as(Form::HumanReadable, bytes).or(Err(error))
    })
}

/// A value, which must not be too deep, from its bytes in this form.
pub(super) fn decode_as<T: DeserializeOwned>(form: Form, bytes: &[u8]) -> Result<T, PayloadError> {
    let (value, rest) = match form {
        Form::Binary => {
            let mut deserializer = Deserializer::new(bytes);
            let value = T::deserialize(&mut deserializer);
            (value, deserializer.into_inner())
        }
        Form::HumanReadable => {
            let mut deserializer = Deserializer::new(bytes).with_human_readable();
            let value = T::deserialize(&mut deserializer);
            (value, deserializer.into_inner())
        }
    };
    let value = value.map_err(|e| PayloadError::Decode(Box::new(e)))?;
    match rest.len() {
        0 => Ok(value),
        trailing => Err(PayloadError::Trailing(trailing)),
    }
}
