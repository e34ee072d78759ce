//! Small helpers for JSON that is exact.

use domain::{Money, Timestamp};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// An amount as a JSON number with the very digits of its plain decimal: through a float, 0.1 + 0.2
/// would not be 0.3.
#[derive(Clone, Copy, Debug)]
pub struct Amount(pub Money);

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

/// A moment in RFC 3339, UTC.
#[derive(Clone, Copy, Debug)]
pub struct Moment(pub Timestamp);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_their_digits() {
        for (text, shown) in [("9.950", "9.95"), ("10", "10"), ("0.000001", "0.000001")] {
            let amount = Amount(Money::parse(text).unwrap());
            assert_eq!(serde_json::to_string(&amount).unwrap(), shown);
        }
        let most = Amount(Money::from_micros(i64::MAX));
        assert_eq!(
            serde_json::to_string(&most).unwrap(),
            "9223372036854.775807"
        );
    }
}
