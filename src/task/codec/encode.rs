use std::any::type_name;
use std::borrow::Cow;

use rmp_serde::Serializer;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::task::codec::Form;
use crate::task::codec::bounded::{self, Seen};
use crate::task::codec::decode::decode_as;
use crate::task::codec::message_pack::{is_too_deep, sorted};
use crate::task::invalid::PayloadError;

/// A value as bytes.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    /// Whether it has a map, whose entries may be in another order in the bytes of an equal value.
    maps: bool,
}

impl Encoded {
    /// Bytes that windlass does not look into.
    pub(crate) fn opaque(bytes: Vec<u8>) -> Self {
        Self { bytes, maps: false }
    }

    /// The bytes, but equal for equal values.
    pub(crate) fn canonical(&self) -> Cow<'_, [u8]> {
        let sorted = self.maps.then(|| sorted(&self.bytes)).flatten();
        sorted.map_or(Cow::Borrowed(&self.bytes), Cow::Owned)
    }
}

/// A value that whoever reads it may take for another type, such as a handler's result.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, PayloadError> {
    encode_as(Form::Binary, value).map(|encoded| encoded.bytes)
}

/// A value that is surely read back as one of its type: it has been tried.
pub(crate) fn encode_task<T: Serialize + DeserializeOwned>(
    task: &T,
) -> Result<Encoded, PayloadError> {
    let encoded = encode_as(Form::Binary, task)?;
    let Err(error) = decode_as::<T>(Form::Binary, &encoded.bytes) else {
        return Ok(encoded);
    };
    let encoded = encode_as(Form::HumanReadable, task)?;
    if is_read_back::<T>(&encoded) {
        return Ok(encoded);
    }
    let type_name = type_name::<T>();
    let source = Box::new(error);
    Err(PayloadError::Unreadable { type_name, source })
}

/// Whether [`decode`](super::decode), which tries the binary form first, makes the same value of a
/// task in the human-readable one.
fn is_read_back<T: Serialize + DeserializeOwned>(encoded: &Encoded) -> bool {
    match decode_as::<T>(Form::Binary, &encoded.bytes) {
        // A text in the human-readable form may be taken for the bytes of the binary one.
        Ok(taken) => encode_as(Form::HumanReadable, &taken)
            .is_ok_and(|again| again.canonical() == encoded.canonical()),
        Err(_) => decode_as::<T>(Form::HumanReadable, &encoded.bytes).is_ok(),
    }
}

fn encode_as<T: Serialize>(form: Form, value: &T) -> Result<Encoded, PayloadError> {
    let seen = Seen::default();
    let mut bytes = Vec::with_capacity(128);
    let named = Serializer::new(&mut bytes).with_struct_map();
    let result = match form {
        Form::Binary => bounded::serialize(value, &mut { named }, &seen),
        Form::HumanReadable => bounded::serialize(value, &mut named.with_human_readable(), &seen),
    };
    if seen.too_deep.get() {
        return Err(PayloadError::TooDeep);
    }
    result.map_err(|e| PayloadError::Encode(Box::new(e)))?;
    if is_too_deep(&bytes) {
        return Err(PayloadError::TooDeep);
    }
    Ok(Encoded {
        bytes,
        maps: seen.maps.get(),
    })
}
