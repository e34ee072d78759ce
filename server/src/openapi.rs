//! Generates the OpenAPI document of the SMS API from its handlers and from the types that they
//! serialize.

mod events;
pub mod refusals;
pub mod schemas;

use app::docs::VERSION_RULES;
use app::reports::grouped;
use domain::Reason;
use domain::message::PAGE_CHARS;
use serde_json::{Map, Value, json};
use service::Limits;

use crate::api;

const DESCRIPTION: &str = "Send SMS and look up their status. Every response is JSON with a code \
    and a message. The API key is a path segment or a Bearer token. Messages of a test key go to \
    no carrier and are charged to the test balance. With a test key, reserved local numbers decide \
    the outcome: 00000001 delivered, 00000002 failed, 00000003 expired, 00000004 rejected, \
    00000005 delivered after 30 s, 00000006 delivered on the second attempt, 00000007 delivered \
    with the receipt before the carrier's answer, 00000008 delivered and answered. 00000501 to \
    00000505 return that code; in an upload, for the whole file. If the key is in a header, one \
    message is at /sms/reports/{transid} and one batch at /sms/batches/{batchid}. An unknown parameter is refused.";

/// Returns the document. `base_url` is the address that customers use.
///
/// # Errors
/// If the document can't be serialized.
pub fn document(base_url: &str, limits: &Limits) -> Result<Value, serde_json::Error> {
    let mut document = serde_json::to_value(api::documented_routes().into_openapi())?;
    document["openapi"] = json!("3.1.0");
    document["info"] = json!({
        "title": "Heliograph SMS API",
        "version": "1",
        "description": format!("{DESCRIPTION}\n\n{VERSION_RULES}"),
    });
    document["servers"] = json!([{ "url": base_url }]);
    let components = &mut document["components"];
    components["securitySchemes"] = json!({
        "bearer": {"type": "http", "scheme": "bearer", "description": "The API key."}
    });
    components["examples"] = examples();
    components["headers"] = headers();
    components["schemas"]["Message"]["maxLength"] = json!(limits.message_pages_max * PAGE_CHARS);
    let webhooks = events::webhooks(&mut components["schemas"]);
    document["webhooks"] = webhooks;
    let bulk = &mut document["paths"]["/sms/bulk/{key}"]["post"]["description"];
    *bulk = json!(format!(
        "{} A file has at most {} rows and {} MiB.",
        bulk.as_str().unwrap_or_default(),
        grouped(limits.bulk_rows_max.cast_signed()),
        limits.bulk_bytes_max / (1024 * 1024),
    ));
    if let Some(paths) = document["paths"].as_object_mut() {
        finish(paths);
    }
    Ok(document)
}

/// Adds the common headers to the responses of each operation, and adds twins of the operations
/// without the key in the path. `/sms/reports/{key}` and the twin `/sms/reports/{transid}` are the
/// same template. The Authorization header decides which one applies, and OpenAPI can't express
/// that.
fn finish(paths: &mut Map<String, Value>) {
    let mut twins = Map::new();
    for (path, operations) in paths.iter_mut() {
        let Some(operations) = operations.as_object_mut() else {
            continue;
        };
        for operation in operations.values_mut() {
            if operation["security"].is_null() {
                operation["security"] = json!([]);
            }
            if path != api::DOCUMENT_PATH {
                name_headers(operation);
            }
            leave_null_out(operation);
        }
        if path.contains("/{key}") {
            let twin = operations
                .iter()
                .map(|(method, operation)| (method.clone(), with_header(operation.clone())));
            twins.insert(path.replace("/{key}", ""), twin.collect());
        }
    }
    paths.extend(twins);
}

/// The headers of every response.
const OF_EVERY_ANSWER: [&str; 6] = [
    "X-Request-Id",
    "Cache-Control",
    "Referrer-Policy",
    "X-Content-Type-Options",
    "Content-Security-Policy",
    "Strict-Transport-Security",
];

/// Replaces the names of headers with references, and adds the headers of every response.
fn name_headers(operation: &mut Value) {
    let Some(responses) = operation["responses"].as_object_mut() else {
        return;
    };
    for (status, response) in responses {
        let existing = response["headers"].as_object();
        let mut names: Vec<String> =
            existing.map(|existing| existing.keys().cloned().collect()).unwrap_or_default();
        names.extend(OF_EVERY_ANSWER.map(str::to_owned));
        if !matches!(status.as_str(), "401" | "405" | "431") {
            names.extend(["RateLimit", "RateLimit-Policy"].map(str::to_owned));
        }
        let reference = |name: String| {
            let place = format!("#/components/headers/{name}");
            (name, json!({ "$ref": place }))
        };
        response["headers"] = Value::Object(names.into_iter().map(reference).collect());
    }
}

/// Removes null from the schemas of optional parameters. A client omits such a parameter and never
/// sends null.
fn leave_null_out(operation: &mut Value) {
    let parameters = operation.get_mut("parameters");
    let parameters = parameters.and_then(Value::as_array_mut);
    let parameters = parameters.into_iter().flatten();
    parameters.for_each(|parameter| never_null(&mut parameter["schema"]));
    let contents = operation.pointer_mut("/requestBody/content");
    let contents = contents.and_then(Value::as_object_mut);
    let contents = contents.into_iter().flatten();
    contents.for_each(|(_, content)| never_null(&mut content["schema"]));
}

fn never_null(schema: &mut Value) {
    let Some(choices) = schema.get_mut("oneOf").and_then(Value::as_array_mut) else {
        return;
    };
    let all = choices.len();
    choices.retain(|choice| choice["type"] != "null");
    if choices.len() < all {
        *schema = choices.swap_remove(0);
    }
}

/// Returns the operation with the key in the header.
fn with_header(mut operation: Value) -> Value {
    if let Some(parameters) = operation["parameters"].as_array_mut() {
        parameters.retain(|parameter| parameter["name"] != "key");
    }
    operation["security"] = json!([{ "bearer": [] }]);
    if let Some(id) = operation["operationId"].as_str() {
        operation["operationId"] = json!(format!("{id}WithHeader"));
    }
    operation
}

fn examples() -> Value {
    let examples = Reason::ALL.map(|reason| {
        let example = json!({ "value": refusals::example(reason) });
        (reason.as_str().to_owned(), example)
    });
    Value::Object(examples.into_iter().collect())
}

/// Returns every header that a response may have, with an example.
fn headers() -> Value {
    let header = |description: &str, example: &str| {
        json!({
            "description": description,
            "schema": {"type": "string", "examples": [example]},
        })
    };
    json!({
        "X-Request-Id": header("Identifies the request. Quote it to support.", "1f8b0800-42"),
        "Cache-Control": header("No cache may store the response.", "no-store"),
        "Referrer-Policy": header(
            "Browsers don't send the address, which may hold the key, as a referrer.",
            "no-referrer",
        ),
        "X-Content-Type-Options": header("Browsers mustn't guess the content type.", "nosniff"),
        "Content-Security-Policy": header(
            "Browsers load nothing for the response and show it in no frame.",
            "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
        ),
        "Strict-Transport-Security": header(
            "Over HTTPS: from now on, use only HTTPS.",
            "max-age=31536000; includeSubDomains",
        ),
        "RateLimit": header(
            "If requests are limited: the requests that are left (r), and the seconds until the \
             limit is reset (t).",
            "\"requests\";r=9;t=1",
        ),
        "RateLimit-Policy": header(
            "If requests are limited: the number of requests (q) in a window of seconds (w).",
            "\"requests\";q=10;w=1",
        ),
        "Idempotency-Replayed": header(
            "true if an earlier request with this Idempotency-Key got the same response; otherwise \
             absent.",
            "true",
        ),
        "Retry-After": header("Seconds to wait before another attempt.", "1"),
        "Allow": header("The methods that are allowed at this address.", "GET, POST"),
        "WWW-Authenticate": header("How to give a key outside the path.", "Bearer"),
        "Connection": header("The server closes the connection.", "close"),
        "Content-Disposition": header(
            "On CSV: a name for the file.",
            "attachment; filename=\"reports.csv\"",
        ),
        "X-Next-Cursor": header(
            "On CSV: the cursor that is next in JSON. Absent on the last page.",
            "m_0000000000000",
        ),
    })
}

#[cfg(test)]
mod tests;
