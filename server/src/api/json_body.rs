//! Parses the members of a JSON object. Keeps duplicate members, and members whose text isn't valid
//! Unicode.

use std::fmt;

use domain::Reason;
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::answer::Failure;
use super::parameters::Given;

/// A member's name and value. The name is `None` if it isn't text.
type Member = (Option<String>, Given);

/// Returns the members in order. Leaves out members that are null, because they count as absent.
pub fn members(body: &[u8]) -> Result<Vec<Member>, Failure> {
    let text = std::str::from_utf8(body).map_err(|_| Failure::of(Reason::InvalidEncoding))?;
    let mut json = serde_json::Deserializer::from_str(text);
    let members = json.deserialize_map(Members).map_err(|error| bad(&error))?;
    json.end().map_err(|error| bad(&error))?;
    Ok(members)
}

/// Describes the JSON error and its position.
fn bad(error: &serde_json::Error) -> Failure {
    let detail = match error.classify() {
        Category::Data => "The body must be one JSON object.".to_owned(),
        // serde_json's message quotes nothing from the body and ends with line and column.
        Category::Syntax | Category::Eof | Category::Io => {
            let hint = if error.to_string().starts_with("control character") {
                " In a string, a line break is written \\n."
            } else {
                ""
            };
            format!("The body isn't valid JSON: {error}.{hint}")
        }
    };
    Failure::with_detail(Reason::InvalidParameter, detail)
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<Member>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        // `RawValue` skips values of any depth without recursion. It also distinguishes bad
        // surrogates from bad JSON.
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            if value.get() != "null" {
                members.push((serde_json::from_str(name.get()).ok(), read(value)));
            }
        }
        Ok(members)
    }
}

fn read(raw: &RawValue) -> Given {
    let text = raw.get();
    match text {
        "true" => Given::Boolean(true),
        "false" => Given::Boolean(false),
        _ if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
            Given::Number(text.to_owned())
        }
        // The text is a well-formed JSON string, so only its surrogates can be wrong.
        _ if text.starts_with('"') => {
            serde_json::from_str(text).map_or(Given::BadEncoding, Given::Text)
        }
        _ => Given::NotText,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_what_maps_lose() {
        let found =
            members(br#"{"a":"1","a":2,"b":"\ud800","\udc00":"x","c":[[[]]],"d":true}"#).unwrap();
        let name = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                (name("a"), Given::Text("1".into())),
                (name("a"), Given::Number("2".into())),
                (name("b"), Given::BadEncoding),
                (None, Given::Text("x".into())),
                (name("c"), Given::NotText),
                (name("d"), Given::Boolean(true)),
            ]
        );
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let bomb = "[".repeat(60_000);
        for body in ["", "[]", "1", "{", "{} {}", "{\"a\"}", "{\"a\":\"\n\"}", bomb.as_str()] {
            assert!(members(body.as_bytes()).is_err());
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(30_000), "]".repeat(30_000));
        assert_eq!(members(deep.as_bytes()).unwrap()[0].1, Given::NotText);
    }
}
