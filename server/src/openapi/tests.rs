use std::collections::BTreeSet;

use super::*;
use crate::report_csv;

fn whole() -> Value {
    document("https://sms.example.org", &Limits::default()).unwrap()
}

/// Returns the strings of a list in the document.
fn list(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[test]
fn every_route_is_documented_with_and_without_a_key_in_the_path() {
    let document = whole();
    let paths = document["paths"].as_object().unwrap();
    let documented: BTreeSet<String> = paths.keys().cloned().collect();
    let mut expected = BTreeSet::new();
    for template in api::TEMPLATES {
        expected.insert(template.to_owned());
        expected.insert(template.replace("/{key}", ""));
    }
    assert_eq!(documented, expected);
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    let document = whole();
    let mut names = BTreeSet::new();
    for operations in document["paths"].as_object().unwrap().values() {
        for operation in operations.as_object().unwrap().values() {
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()));
        }
    }
}

#[test]
fn every_reason_is_documented_and_in_some_response() {
    let document = whole();
    let expected = BTreeSet::from(Reason::ALL.map(|reason| reason.as_str().to_owned()));
    let listed = list(&document["components"]["schemas"]["Reason"]["enum"]);
    assert_eq!(listed.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
    let mut answered = BTreeSet::new();
    for operations in document["paths"].as_object().unwrap().values() {
        for operation in operations.as_object().unwrap().values() {
            for response in operation["responses"].as_object().unwrap().values() {
                let examples = &response["content"]["application/json"]["examples"];
                answered.extend(
                    examples.as_object().into_iter().flatten().map(|(word, _)| word.clone()),
                );
            }
        }
    }
    assert_eq!(answered, expected);
}

#[test]
fn the_columns_of_a_table_are_the_fields_of_a_report() {
    let document = whole();
    let report = &document["components"]["schemas"]["Report"];
    let fields: BTreeSet<&str> =
        report["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    // The columns of a table stay as they are, so that programs can rely on their order.
    let columns = report_csv::names().into_iter().chain(["send_at"]);
    assert_eq!(fields, columns.collect());
    let required: BTreeSet<&str> = list(&report["required"]).into_iter().collect();
    assert_eq!(required, fields);
    let message = &document["components"]["schemas"]["InboundMessage"]["properties"];
    let fields: BTreeSet<&str> = message.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, BTreeSet::from(crate::inbound_csv::NAMES));
}

#[test]
fn the_limits_are_those_of_the_settings() {
    let limits = Limits {
        message_pages_max: 3,
        bulk_rows_max: 5_000,
        bulk_bytes_max: 2 * 1024 * 1024,
        ..Limits::default()
    };
    let document = document("https://sms.example.org", &limits).unwrap();
    for path in ["/sms/bulk/{key}", "/sms/bulk"] {
        let description = document["paths"][path]["post"]["description"].as_str().unwrap();
        assert!(description.ends_with("A file has at most 5,000 rows and 2 MiB."), "{path}");
    }
    assert_eq!(document["components"]["schemas"]["Message"]["maxLength"], 480);
    assert_eq!(document["servers"][0]["url"], "https://sms.example.org");
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
    let document = whole();
    walk(&document, &document);
}
