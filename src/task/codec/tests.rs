//! Whole values on their way out and back, also between this version and 0.1, which knew the binary
//! form alone.

use std::collections::HashMap;
use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};

use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::*;
use crate::defaults::MAX_DEPTH;
use crate::task::invalid::PayloadError;

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Lists(Vec<Lists>);

fn lists(depth: usize) -> Lists {
    (0..depth).fold(Lists(vec![]), |inner, _| Lists(vec![inner]))
}

/// Has two forms, as `uuid::Uuid` has: a text where the format is human-readable, else bytes.
#[derive(Debug, PartialEq, Clone, Copy)]
struct Id([u8; 4]);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(&format_args!("{:08x}", u32::from_be_bytes(self.0))),
            false => serializer.serialize_bytes(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl serde::de::Visitor<'_> for Bytes {
            type Value = Id;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("four bytes")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Id, E> {
                bytes.try_into().map(Id).map_err(E::custom)
            }
        }
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            let number = u32::from_str_radix(&text, 16).map_err(D::Error::custom)?;
            return Ok(Self(number.to_be_bytes()));
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Has two forms of which one can be taken for the other.
#[derive(Debug, PartialEq, Clone)]
struct Blob(Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(&format_args!("{:?}", self.0)),
            false => serializer.collect_str(&String::from_utf8_lossy(&self.0)),
        }
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Takes the text of either form, as a type that takes any bytes does.
        String::deserialize(deserializer).map(|text| Self(text.into_bytes()))
    }
}

/// As `chrono::DateTime` is: a text in both forms.
#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
struct Date(String);

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Plain {
    ip: IpAddr,
    id: Id,
    date: Date,
    wide: u128,
    some: Option<Option<u8>>,
    map: HashMap<u32, (char, f64)>,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
#[serde(tag = "type")]
enum Tagged {
    Host { ip: IpAddr, id: Id, date: Date },
    Wide { number: u128 },
    Narrow { number: u64 },
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
#[serde(untagged)]
enum Untagged {
    Number(u64),
    Host(IpAddr),
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Flattened {
    id: Id,
    #[serde(flatten)]
    host: Host,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Host {
    ip: IpAddr,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Ambiguous {
    blob: Blob,
    host: Untagged,
}

const IP: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ID: Id = Id(*b"\x01\x02\xfe\xff");

fn plain() -> Plain {
    Plain {
        ip: IP,
        id: ID,
        date: Date("2026-12-03T09:00:00Z".into()),
        wide: u128::MAX,
        some: Some(Some(1)),
        map: HashMap::from([(7, ('ü', 0.5))]),
    }
}

fn host() -> Tagged {
    let date = Date("2026-12-03T09:00:00Z".into());
    Tagged::Host {
        ip: IP,
        id: ID,
        date,
    }
}

/// What version 0.1 makes of a task.
fn encode_0_1(value: &impl Serialize) -> Vec<u8> {
    rmp_serde::to_vec_named(value).expect("it can be encoded")
}

/// What version 0.1 makes of bytes.
fn decode_0_1<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let mut deserializer = rmp_serde::Deserializer::new(bytes);
    deserializer.set_max_depth(MAX_DEPTH);
    T::deserialize(&mut deserializer).ok()
}

/// The bytes of a task that is read back.
#[track_caller]
fn sent<T: Serialize + DeserializeOwned + PartialEq + Debug>(task: &T) -> Vec<u8> {
    let bytes = encode_task(task).expect("it can be encoded").bytes;
    let back: T = decode(&bytes).expect("it can be decoded");
    assert_eq!(back, *task);
    bytes
}

#[test]
fn what_0_1_can_read_is_written_as_0_1_writes_it_and_read_from_both() {
    let (plain, narrow) = (plain(), Tagged::Narrow { number: 1 });
    assert_eq!(sent(&plain), encode_0_1(&plain));
    assert_eq!(decode_0_1(&sent(&plain)), Some(plain));
    assert_eq!(sent(&narrow), encode_0_1(&narrow));
    assert_eq!(decode_0_1(&sent(&narrow)), Some(narrow));
    let number = Untagged::Number(1);
    assert_eq!(sent(&number), encode_0_1(&number));
    assert_eq!(sent(&lists(3)), encode_0_1(&lists(3)));
}

#[test]
fn what_0_1_cannot_read_back_is_read_back() {
    assert_eq!(decode_0_1::<Tagged>(&encode_0_1(&host())), None);
    sent(&host());
    sent(&Untagged::Host(IP));
    let host = Host { ip: IP };
    sent(&Flattened { id: ID, host });
}

#[test]
fn what_others_write_in_the_human_readable_form_is_read() {
    #[derive(Serialize)]
    struct Texts {
        ip: &'static str,
        id: &'static str,
    }
    #[derive(Deserialize, Debug, PartialEq)]
    struct Values {
        ip: IpAddr,
        id: Id,
    }
    let (ip, id) = ("127.0.0.1", "0102feff");
    let values = decode::<Values>(&encode_0_1(&Texts { ip, id }));
    assert_eq!(values.ok(), Some(Values { ip: IP, id: ID }));
}

#[test]
fn a_task_that_cannot_be_read_back_is_refused_by_its_type() {
    let wide = Tagged::Wide { number: u128::MAX };
    let error = encode_task(&wide).expect_err("it cannot be read back");
    let text = error.to_string();
    assert!(text.contains("codec::tests::Tagged"), "{text}");
    assert!(matches!(error, PayloadError::Unreadable { .. }));
}

#[test]
fn a_task_that_would_be_read_back_as_another_one_is_refused() {
    let blob = Blob(b"abc".into());
    let task = Ambiguous {
        blob,
        host: Untagged::Host(IP),
    };
    let error = encode_task(&task).expect_err("it is another one when it is read");
    assert!(matches!(error, PayloadError::Unreadable { .. }), "{error}");
}

#[test]
fn deep_values_are_refused_on_both_sides_as_0_1_does() {
    let (deepest, too_deep) = (lists(MAX_DEPTH - 2), lists(MAX_DEPTH - 1));
    assert_eq!(decode_0_1(&sent(&deepest)), Some(deepest));
    assert!(decode_0_1::<IgnoredAny>(&encode_0_1(&too_deep)).is_none());
    for error in [encode_task(&too_deep).err(), encode(&too_deep).err()] {
        assert!(matches!(error, Some(PayloadError::TooDeep)), "{error:?}");
    }
    let hostile = vec![0x91; 1_000_000];
    assert!(matches!(
        decode::<Lists>(&hostile),
        Err(PayloadError::TooDeep)
    ));
}

/// On a thread's small stack, so that an overflow ends the test at once.
#[test]
fn values_of_any_shape_are_refused_before_the_stack_overflows() {
    #[derive(Deserialize, Debug, PartialEq)]
    enum Variants {
        #[serde(rename = "a")]
        A(Box<Variants>),
        #[serde(rename = "b")]
        B,
    }
    /// Has any number of values in one another, without an end.
    struct Endless(Shape);
    #[derive(Clone, Copy)]
    enum Shape {
        List,
        Map,
        UnknownMap,
        Optional,
        Newtype,
        Variant,
        Struct,
    }
    impl Serialize for Endless {
        fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            use serde::ser::{SerializeMap, SerializeStruct};
            match self.0 {
                Shape::List => s.collect_seq([self]),
                Shape::Map => s.collect_map([(1, self)]),
                Shape::UnknownMap => {
                    let mut map = s.serialize_map(None)?;
                    map.serialize_entry(&1, self)?;
                    map.end()
                }
                Shape::Optional => s.serialize_some(self),
                Shape::Newtype => s.serialize_newtype_struct("N", self),
                Shape::Variant => s.serialize_newtype_variant("E", 0, "V", self),
                Shape::Struct => {
                    let mut fields = s.serialize_struct("S", 1)?;
                    fields.serialize_field("f", self)?;
                    fields.end()
                }
            }
        }
    }
    let thread = std::thread::spawn(|| {
        use Shape::*;
        for shape in [List, Map, UnknownMap, Optional, Newtype, Variant, Struct] {
            let error = encode(&Endless(shape)).expect_err("it has no end");
            assert!(matches!(error, PayloadError::TooDeep), "{error}");
        }
        let variants = [&b"\x81\xa1a".repeat(300_000)[..], b"\xa1b"].concat();
        let error = decode::<Variants>(&variants).expect_err("it is too deep");
        assert!(matches!(error, PayloadError::TooDeep), "{error}");
        let shallow = [&b"\x81\xa1a".repeat(3)[..], b"\xa1b"].concat();
        let a = |variants| Variants::A(Box::new(variants));
        assert_eq!(decode(&shallow).ok(), Some(a(a(a(Variants::B)))));
    });
    assert!(thread.join().is_ok());
}

#[test]
fn trailing_bytes_and_garbage_are_refused() {
    let bytes = [encode(&7u8).expect("it can be encoded"), vec![0]].concat();
    let error = decode::<u8>(&bytes);
    assert!(matches!(error, Err(PayloadError::Trailing(1))), "{error:?}");
    for garbage in [&b"\xc1"[..], b""] {
        let error = decode::<u8>(garbage);
        assert!(matches!(error, Err(PayloadError::Decode(_))), "{error:?}");
    }
}

#[test]
fn equal_values_have_equal_canonical_bytes_whatever_the_order_of_their_maps() {
    #[derive(Serialize, Deserialize)]
    struct Nested {
        b: Vec<HashMap<String, HashMap<u32, String>>>,
        a: u8,
    }
    let nested = || {
        let inner = || (0..20).map(|n| (n, n.to_string())).collect();
        let outer = (0..20).map(|n| (n.to_string(), inner())).collect();
        Nested {
            b: vec![outer],
            a: 1,
        }
    };
    let encoded: Vec<_> = (0..10)
        .map(|_| encode_task(&nested()).expect("it can be"))
        .collect();
    let first = &encoded[0];
    assert!(encoded.iter().any(|other| other.bytes != first.bytes));
    for other in &encoded {
        assert_eq!(other.canonical(), first.canonical());
    }
    // Without a map the order is that of the fields, which never changes.
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Fields {
        b: u8,
        a: Option<(u8, [u8; 2])>,
    }
    let fields = Fields {
        b: 1,
        a: Some((2, [3, 4])),
    };
    let encoded = encode_task(&fields).expect("it can be encoded");
    assert_eq!(*encoded.canonical(), encode_0_1(&fields));
}
