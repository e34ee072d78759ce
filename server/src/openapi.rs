//! The OpenAPI document of the SMS API, kept by hand beside the code; a test compares its paths and
//! reasons with the code's.

use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("openapi.json");

/// The document, for the address that customers use.
pub fn document(base_url: &str) -> Result<Value, serde_json::Error> {
    let mut document: Value = serde_json::from_str(DOCUMENT)?;
    document["servers"] = json!([{ "url": base_url }]);
    Ok(document)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::http::Method;
    use domain::Reason;

    use super::*;
    use crate::api::Route;

    #[test]
    fn every_route_is_documented_with_its_methods() {
        let document = document("https://sms.example.org").unwrap();
        let mut documented = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            let asked = path
                .replace("{key}", "k")
                .replace("{transid}", "m_0")
                .replace("{batchid}", "b_0");
            let route = Route::find(&asked).unwrap_or_else(|| panic!("no route at {path}"));
            // The address without key, which then stands in a header, is the same route.
            assert!(route.template().starts_with(path.as_str()), "{path}");
            documented.insert(route.template());
            for method in [Method::GET, Method::POST, Method::HEAD, Method::DELETE] {
                let name = method.as_str().to_ascii_lowercase();
                let listed = methods.get(name).is_some();
                assert_eq!(listed, route.allows(&method), "{method} {path}");
            }
        }
        assert_eq!(documented, BTreeSet::from(Route::TEMPLATES));
    }

    #[test]
    fn every_reason_is_documented() {
        let document = document("https://sms.example.org").unwrap();
        let listed = &document["components"]["schemas"]["Error"]["properties"]["reason"]["enum"];
        let listed: Vec<&str> = listed
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let expected: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(listed, expected);
    }

    #[test]
    fn references_lead_somewhere() {
        fn walk(value: &Value, document: &Value) {
            match value {
                Value::Object(map) => {
                    if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
                        let pointer = reference.strip_prefix('#').unwrap();
                        assert!(document.pointer(pointer).is_some(), "{reference}");
                    }
                    map.values().for_each(|value| walk(value, document));
                }
                Value::Array(items) => items.iter().for_each(|value| walk(value, document)),
                _ => {}
            }
        }
        let document = document("https://sms.example.org").unwrap();
        walk(&document, &document);
    }
}
