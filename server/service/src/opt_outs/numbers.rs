//! Many numbers in memory.

use std::collections::HashSet;

use domain::verify::SECRET_BYTES;
use domain::{EventStream, Number, opt_out};

use crate::Service;
use crate::admission::KeyAccess;
use store::error::Result;
use store::opt_outs;
use store::query::Conn;

/// The maximum number of opt-outs that one statement reads.
const READ_MAX: usize = 10_000;

/// A number as carriers get it, in 8 bytes: its digits after a 1, which keeps leading zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Packed(u64);

impl Packed {
    pub(crate) fn of(digits: &str) -> Self {
        let digits = digits.bytes().map(|digit| u64::from(digit & 0xf));
        Self(digits.fold(1, |sum, digit| sum.wrapping_mul(10).wrapping_add(digit)))
    }

    fn digits(self) -> String {
        self.0.to_string().split_off(1)
    }
}

/// The opt-outs of a list in memory.
#[derive(Default)]
pub(crate) struct OptedOutNumbers {
    numbers: NumberList,
    /// The hashes of erased numbers, and the key that they were hashed with.
    erased: HashSet<String>,
    key: [u8; SECRET_BYTES],
}

impl OptedOutNumbers {
    /// Whether the list has a number, given as carriers get it.
    pub(crate) fn has(&self, number: &str) -> bool {
        self.numbers.has(Packed::of(number)) || self.has_erased(number)
    }

    /// Whether the list has a number that was erased.
    pub(crate) fn has_erased(&self, number: &str) -> bool {
        !self.erased.is_empty() && self.erased.contains(&opt_out::erased(&self.key, number))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.0.is_empty() && self.erased.is_empty()
    }
}

/// Numbers in ascending order, without duplicates. A million takes 8 MB.
#[derive(Clone, Default)]
pub struct NumberList(Vec<Packed>);

impl NumberList {
    pub(super) fn of(number: &Number, country_code: &str) -> Self {
        let mut list = Self::default();
        list.push(number, country_code);
        list
    }

    pub(crate) fn push(&mut self, number: &Number, country_code: &str) {
        self.0.push(Packed::of(&number.for_carrier(country_code)));
    }

    /// Restores the order after [`Self::push`].
    pub(crate) fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup();
    }

    pub(crate) fn has(&self, number: Packed) -> bool {
        self.0.binary_search(&number).is_ok()
    }

    /// Returns the digits of all numbers, at most `most` at a time.
    pub(super) fn chunks(&self, most: usize) -> impl Iterator<Item = Vec<String>> + '_ {
        self.0.chunks(most).map(|chunk| chunk.iter().map(|number| number.digits()).collect())
    }
}

impl Service {
    /// Reads all numbers that may not get messages sent with this key.
    pub(crate) async fn opted_out_numbers(&self, access: &KeyAccess) -> Result<OptedOutNumbers> {
        let mut conn = self.read_of(access.reference).await?;
        let (stream, limit) = (access.stream(), READ_MAX.cast_signed() as i64);
        let (mut numbers, mut after) = (NumberList::default(), String::new());
        loop {
            let page = opt_outs::numbers(&mut conn, stream, &after, limit).await?;
            numbers.0.extend(page.iter().map(|number| Packed::of(number)));
            match page.into_iter().nth(READ_MAX - 1) {
                Some(last) => after = last,
                None => break,
            }
        }
        numbers.sort();
        let erased = self.erased_numbers(&mut conn, stream).await?;
        Ok(OptedOutNumbers { numbers, ..erased })
    }

    /// Reads only the erased numbers of a list, which are few.
    pub(crate) async fn erased_numbers(
        &self,
        conn: Conn<'_>,
        list: EventStream,
    ) -> Result<OptedOutNumbers> {
        let erased: HashSet<_> = opt_outs::erased(conn, list).await?.into_iter().collect();
        // If there is none, there may be no key yet.
        let key = if erased.is_empty() {
            <[u8; SECRET_BYTES]>::default()
        } else {
            self.accounts().erased_key().await?
        };
        Ok(OptedOutNumbers { erased, key, ..OptedOutNumbers::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_number_keeps_its_digits() {
        for digits in ["0000", "26671234568", "071234568", "999999999999999", "000000000000000"] {
            assert_eq!(Packed::of(digits).digits(), digits);
        }
        assert!(Packed::of("0001") != Packed::of("00001"));
    }
}
