//! Helpers for exact JSON.

use domain::{Money, Timestamp};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// An amount as a JSON number with exactly the digits of its decimal. As floats, 0.1 + 0.2 isn't
/// 0.3.
#[derive(Clone, Copy, Debug)]
pub struct Amount(pub Money);

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

/// A time in RFC 3339, UTC.
#[derive(Clone, Copy, Debug)]
pub struct DateTime(pub Timestamp);

impl Serialize for DateTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Returns the text of a string, the digits of a whole number, or `true` or `false`. Returns `None`
/// for anything else, including fractions. A number that is too large for an integer has lost some
/// of its digits, so the result is `None` too.
pub fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Declares the form of a record in JSON, with the type and the value of each
/// field, and the conversion from the record.
macro_rules! shown {
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident from $record:tt: $of:ty {
            $($(#[$about_field:meta])* $field_vis:vis $field:ident: $type:ty = $value:expr,)+
        }
    ) => {
        $(#[$about])*
        #[derive(serde::Serialize)]
        $vis struct $name {
            $($(#[$about_field])* $field_vis $field: $type,)+
        }

        impl From<$of> for $name {
            fn from($record: $of) -> Self {
                Self { $($field: $value,)+ }
            }
        }
    };
}
pub(crate) use shown;

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
        assert_eq!(serde_json::to_string(&most).unwrap(), "9223372036854.775807");
    }

    #[test]
    fn plain_values_are_texts() {
        for (json, text) in [
            ("\"a\"", Some("a")),
            ("18446744073709551615", Some("18446744073709551615")),
            ("-1", Some("-1")),
            ("true", Some("true")),
            ("184467440737095516150", None),
            ("0.5", None),
            ("null", None),
            ("[1]", None),
            ("{}", None),
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(as_text(&value).as_deref(), text, "{json}");
        }
    }
}
