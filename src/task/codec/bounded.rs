use std::cell::Cell;

use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::defaults::MAX_DEPTH;

/// How many values may be in one another. More than the levels of a payload, because an option or
/// a newtype is a level here and none in the bytes.
const MAX_LEVELS: usize = 4 * MAX_DEPTH;

/// What was seen of a value while it was serialized.
#[derive(Default)]
pub(super) struct Seen {
    /// It was given up, because its values are too deep in one another.
    pub(super) too_deep: Cell<bool>,
    /// It has a map of several entries, whose order may be another one the next time.
    pub(super) maps: Cell<bool>,
}

/// Serializes a value, and gives up where it is nested so deep that the stack might overflow, which
/// would abort the process.
pub(super) fn serialize<T, S>(value: &T, serializer: S, seen: &Seen) -> Result<S::Ok, S::Error>
where
    T: Serialize + ?Sized,
    S: Serializer,
{
    let levels = MAX_LEVELS;
    Nested {
        value,
        levels,
        seen,
    }
    .serialize(serializer)
}

/// A value within others, and how many may still be in it.
struct Nested<'a, T: ?Sized> {
    value: &'a T,
    levels: usize,
    seen: &'a Seen,
}

impl<T: Serialize + ?Sized> Serialize for Nested<'_, T> {
    fn serialize<S: Serializer>(&self, inner: S) -> Result<S::Ok, S::Error> {
        let Some(levels) = self.levels.checked_sub(1) else {
            self.seen.too_deep.set(true);
            return Err(S::Error::custom("it is nested too deep"));
        };
        let seen = self.seen;
        self.value.serialize(Bounded {
            inner,
            levels,
            seen,
        })
    }
}

/// A serializer, or the part of one that takes the elements of a value.
struct Bounded<'a, S> {
    inner: S,
    levels: usize,
    seen: &'a Seen,
}

impl<'a, S> Bounded<'a, S> {
    fn nested<'v, T: ?Sized>(&self, value: &'v T) -> Nested<'v, T>
    where
        'a: 'v,
    {
        Nested {
            value,
            levels: self.levels,
            seen: self.seen,
        }
    }

    /// The part that takes the elements of a value.
    fn compound<C, E>(self, start: impl FnOnce(S) -> Result<C, E>) -> Result<Bounded<'a, C>, E> {
        Ok(Bounded {
            inner: start(self.inner)?,
            levels: self.levels,
            seen: self.seen,
        })
    }
}

/// Passes values on as they are.
macro_rules! plain {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $method(self, $($argument: $type),*) -> Result<S::Ok, S::Error> {
            self.inner.$method($($argument),*)
        }
    )*};
}

/// Passes a value on that has another one in it.
macro_rules! wrapping {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $method<T: Serialize + ?Sized>(self, $($argument: $type,)* value: &T) -> Result<S::Ok, S::Error> {
            let value = self.nested(value);
            self.inner.$method($($argument,)* &value)
        }
    )*};
}

/// Passes a value on that has many others in it.
macro_rules! compound {
    ($($method:ident($($argument:ident: $type:ty),*) -> $part:ident;)*) => {$(
        fn $method(self, $($argument: $type),*) -> Result<Self::$part, S::Error> {
            self.compound(|inner| inner.$method($($argument),*))
        }
    )*};
}

impl<'a, S: Serializer> Serializer for Bounded<'a, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Bounded<'a, S::SerializeSeq>;
    type SerializeTuple = Bounded<'a, S::SerializeTuple>;
    type SerializeTupleStruct = Bounded<'a, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Bounded<'a, S::SerializeTupleVariant>;
    type SerializeMap = Bounded<'a, S::SerializeMap>;
    type SerializeStruct = Bounded<'a, S::SerializeStruct>;
    type SerializeStructVariant = Bounded<'a, S::SerializeStructVariant>;

    plain! {
        serialize_bool(value: bool);
        serialize_i8(value: i8);
        serialize_i16(value: i16);
        serialize_i32(value: i32);
        serialize_i64(value: i64);
        serialize_i128(value: i128);
        serialize_u8(value: u8);
        serialize_u16(value: u16);
        serialize_u32(value: u32);
        serialize_u64(value: u64);
        serialize_u128(value: u128);
        serialize_f32(value: f32);
        serialize_f64(value: f64);
        serialize_char(value: char);
        serialize_str(value: &str);
        serialize_bytes(value: &[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(name: &'static str);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str);
    }

    wrapping! {
        serialize_some();
        serialize_newtype_struct(name: &'static str);
        serialize_newtype_variant(name: &'static str, index: u32, variant: &'static str);
    }

    compound! {
        serialize_seq(len: Option<usize>) -> SerializeSeq;
        serialize_tuple(len: usize) -> SerializeTuple;
        serialize_tuple_struct(name: &'static str, len: usize) -> SerializeTupleStruct;
        serialize_tuple_variant(name: &'static str, index: u32, variant: &'static str, len: usize) -> SerializeTupleVariant;
        serialize_struct(name: &'static str, len: usize) -> SerializeStruct;
        serialize_struct_variant(name: &'static str, index: u32, variant: &'static str, len: usize) -> SerializeStructVariant;
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        if len.is_none_or(|len| len > 1) {
            self.seen.maps.set(true);
        }
        self.compound(|inner| inner.serialize_map(len))
    }

    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.collect_str(value)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Passes the elements of a value on.
macro_rules! elements {
    ($($part:ident: $($method:ident($($name:ident: $type:ty)?)),*;)*) => {$(
        impl<S: $part> $part for Bounded<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            $(
                fn $method<T: Serialize + ?Sized>(&mut self, $($name: $type,)? value: &T) -> Result<(), S::Error> {
                    let value = self.nested(value);
                    self.inner.$method($($name,)? &value)
                }
            )*

            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        }
    )*};
}

elements! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeMap: serialize_key(), serialize_value();
    SerializeStruct: serialize_field(name: &'static str);
    SerializeStructVariant: serialize_field(name: &'static str);
}
