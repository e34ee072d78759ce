//! Identifiers: application references, message and batch IDs, request IDs, and shards.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::timestamp::DAY_MS;
use crate::words::serde_as_text;

pub const REFERENCE_DIGITS: usize = 6;
/// The maximum number of characters in a request ID.
pub const REQUESTID_CHARS_MAX: usize = 255;

/// 2024-01-01T00:00:00Z, the epoch of the milliseconds in IDs.
pub const ID_EPOCH_UNIX_MS: i64 = 1_704_067_200_000;
/// The number of bits below the milliseconds of an ID: 10 for the node, 11 for the count within a
/// millisecond.
pub const ID_LOW_BITS: u32 = 21;
/// The bits of an ID that hold the slot of the node that assigned it. The IDs of a batch have the
/// same slot, but other nodes' IDs lie between them.
pub const ID_SLOT_BITS: i64 = (1 << ID_LOW_BITS) - (1 << ID_COUNT_BITS);

/// An application's reference: the first 6 digits of its keys, which payers quote in deposits. It
/// may start with 0, so it is a string everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference([u8; REFERENCE_DIGITS]);

/// The text isn't a valid reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("A reference has exactly 6 digits.")]
pub struct InvalidReference;

impl Reference {
    /// Parses 6 ASCII digits.
    ///
    /// # Errors
    /// Returns an error for any other text.
    pub fn parse(text: &str) -> Result<Self, InvalidReference> {
        let bytes: [u8; REFERENCE_DIGITS] =
            text.as_bytes().try_into().map_err(|_| InvalidReference)?;
        if bytes.iter().all(u8::is_ascii_digit) { Ok(Self(bytes)) } else { Err(InvalidReference) }
    }

    /// Returns the references that a payer may have meant by this one: those that differ in one
    /// digit, and those with two neighbouring digits swapped.
    pub fn similar(self) -> Vec<Self> {
        let mut found = Vec::new();
        for place in 0..REFERENCE_DIGITS {
            for digit in (b'0'..=b'9').filter(|digit| *digit != self.0[place]) {
                let mut digits = self.0;
                digits[place] = digit;
                found.push(Self(digits));
            }
            if place > 0 && self.0[place] != self.0[place - 1] {
                let mut digits = self.0;
                digits.swap(place, place - 1);
                found.push(Self(digits));
            }
        }
        found
    }

    /// Returns the distinct references in a text. A reference is six digits with optional spaces
    /// and dashes between them and no other digits next to them.
    pub fn all_in(text: &str) -> Vec<Self> {
        let apart = text.split(|c: char| !c.is_ascii_digit());
        let joined = text.split(|c: char| !c.is_ascii_digit() && !matches!(c, ' ' | '-'));
        let joined = joined.map(|part| part.replace([' ', '-'], ""));
        let mut found: Vec<_> = (apart.map(str::to_owned).chain(joined))
            .filter_map(|digits| Self::parse(&digits).ok())
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the reference for a number. Only the last 6 decimal digits count.
    pub fn from_number(number: u32) -> Self {
        let mut digits = [b'0'; REFERENCE_DIGITS];
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10).to_le_bytes()[0];
            rest /= 10;
        }
        Self(digits)
    }

    pub fn as_str(&self) -> &str {
        // The bytes are always ASCII digits, so they are valid UTF-8.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reference({self})")
    }
}

serde_as_text!(Reference, Self::parse);

/// Crockford's base 32 in lower case. Texts sort like their numbers, and no two letters look alike.
const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// 13 × 5 bits hold the 63 bits of an ID.
const ID_CHARS: usize = 13;

/// Writes an ID as text, after a prefix.
pub fn encode_id(prefix: &str, id: i64) -> String {
    let mut rest = id.cast_unsigned();
    let mut chars = [b'0'; ID_CHARS];
    for slot in chars.iter_mut().rev() {
        *slot = BASE32[(rest & 31) as usize];
        rest >>= 5;
    }
    let mut text = String::with_capacity(prefix.len() + ID_CHARS);
    text.push_str(prefix);
    text.extend(chars.iter().map(|&b| char::from(b)));
    text
}

/// Parses the text of an ID with this prefix. Returns `None` if it isn't one.
pub fn decode_id(prefix: &str, text: &str) -> Option<i64> {
    let chars = text.strip_prefix(prefix)?.as_bytes();
    if chars.len() != ID_CHARS {
        return None;
    }
    let mut value = 0_u64;
    for byte in chars {
        let digit = BASE32.iter().position(|letter| letter == byte)? as u64;
        // 13 letters hold 65 bits, so a text can exceed the 63 bits of an ID.
        value = value.checked_mul(32)?.checked_add(digit)?;
    }
    i64::try_from(value).ok()
}

/// Returns the ID for a time and low bits (node and count). IDs of later milliseconds are greater.
/// Therefore an ID determines its day, and sorting by the primary key sorts by time.
pub const fn compose_id(unix_ms: i64, low: i64) -> i64 {
    ((unix_ms - ID_EPOCH_UNIX_MS) << ID_LOW_BITS) | low
}

/// Returns the smallest ID that a message of a day can have. Days are counted since 1970-01-01 UTC.
pub const fn id_of_day(day: i64) -> i64 {
    compose_id(day * DAY_MS, 0)
}

/// The number of bits of an ID that count within a millisecond.
const ID_COUNT_BITS: u32 = 11;

/// Returns the `n`th ID after `first`, which must be the first ID of a millisecond. After the last
/// ID of a millisecond, the IDs of the next one follow.
pub const fn nth_id(first: i64, n: i64) -> i64 {
    first + ((n >> ID_COUNT_BITS) << ID_LOW_BITS) + (n & ((1 << ID_COUNT_BITS) - 1))
}

/// Returns the Unix milliseconds at which an ID was made.
pub const fn id_unix_ms(id: i64) -> i64 {
    (id >> ID_LOW_BITS) + ID_EPOCH_UNIX_MS
}

macro_rules! prefixed_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub i64);

        impl $name {
            /// Parses the text form. Returns `None` if the text isn't a valid ID.
            pub fn parse(text: &str) -> Option<Self> {
                decode_id($prefix, text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&encode_id($prefix, self.0))
            }
        }

        serde_as_text!($name, |text: &str| Self::parse(text).ok_or("not an ID"));
    };
}

prefixed_id!(
    /// A message's ID: `m_` and 13 base-32 characters.
    Transid,
    "m_"
);
prefixed_id!(
    /// A batch's ID: `b_` and 13 base-32 characters.
    BatchId,
    "b_"
);

prefixed_id!(
    /// An endpoint's ID: `w_` and 13 base-32 characters.
    WebhookId,
    "w_"
);

prefixed_id!(
    /// A verification's ID: `v_` and 13 base-32 characters.
    VerifyId,
    "v_"
);

prefixed_id!(
    /// An inbound message's ID: `i_` and 13 base-32 characters.
    InboundId,
    "i_"
);

/// An application's ID in the database. Elsewhere, an application is identified by its
/// [`Reference`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ApplicationId(pub i64);

/// The shard that holds the rows of an account's applications. A database can be spread over
/// several servers, and each shard is on one of them. An account's shard never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shard(pub i64);

impl Shard {
    /// The smallest shard. It also holds the rows that belong to no account.
    pub const FIRST: Self = Self(1);
}

/// An identifier that the caller chose for a message or batch, to find it later. It doesn't have to
/// be unique.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RequestId(String);

/// The text isn't a valid request ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requestid must have 1 to {REQUESTID_CHARS_MAX} characters and no NUL")]
pub struct InvalidRequestId;

impl RequestId {
    /// Parses 1 to 255 characters without NUL.
    ///
    /// # Errors
    /// Returns an error if the text is empty, too long, or contains a NUL.
    pub fn parse(text: &str) -> Result<Self, InvalidRequestId> {
        let fits =
            !text.is_empty() && !text.contains('\0') && text.chars().count() <= REQUESTID_CHARS_MAX;
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidRequestId) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}
