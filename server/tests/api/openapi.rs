//! The OpenAPI document is served, and real answers match it.

use serde_json::Value;

use crate::client::{Answer, MULTIPART, bare, form, multipart, posted};
use crate::harness::{Place, TestServer};

/// Headers of HTTP itself.
const UNDOCUMENTED: [&str; 5] =
    ["content-type", "content-length", "date", "connection", "keep-alive"];

struct Document(Value);

impl Document {
    fn served(server: &TestServer) -> Self {
        let answer = server.get("/openapi.json");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        Self(answer.json())
    }

    /// Returns the value that a `$ref` points to, or the value itself.
    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => {
                let pointer = reference.strip_prefix('#').unwrap();
                self.0.pointer(pointer).unwrap()
            }
            None => value,
        }
    }

    /// Asserts that the document describes this answer of the operation.
    fn describes(&self, method: &str, path: &str, answer: &Answer) {
        let what = format!("{method} {path}: {} {}", answer.status, answer.text());
        let responses = &self.0["paths"][path][method]["responses"];
        let response = &responses[answer.status.to_string()];
        assert!(response.is_object(), "{what}");
        let named = response["headers"].as_object().unwrap();
        for name in answer.header_names() {
            let is_named = named.keys().any(|known| known.eq_ignore_ascii_case(name));
            assert!(is_named || UNDOCUMENTED.contains(&name), "{name} of {what}");
        }
        let kind = answer.header("content-type").unwrap();
        let kind = kind.split(';').next().unwrap();
        let schema = &response["content"][kind]["schema"];
        assert!(schema.is_object(), "{kind} of {what}");
        if kind == "application/json" {
            let fits = self.fits(schema, &answer.json());
            assert_eq!(fits, Ok(()), "{what}");
            // The reason why a code isn't verified is no refusal.
            if let Some(reason) = answer.json()["reason"].as_str().filter(|_| answer.status != 200)
            {
                let reasons = response["content"][kind]["examples"].as_object().unwrap();
                assert!(reasons.contains_key(reason), "{what}");
            }
        }
    }

    /// Checks a value against a schema. Supports only the keywords that the document uses.
    fn fits(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let schema = self.resolved(schema);
        let wrong = |what: &str| Err(format!("{what}: {value} isn't {schema}"));
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.fits(part, value)?;
        }
        if let Some(parts) = schema["oneOf"].as_array()
            && parts.iter().filter(|part| self.fits(part, value).is_ok()).count() != 1
        {
            return wrong("not exactly one");
        }
        let types = match &schema["type"] {
            Value::Array(types) => types.clone(),
            Value::Null => Vec::new(),
            one => vec![one.clone()],
        };
        let is = |name: &Value| match name.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            other => panic!("a type of its own: {other}"),
        };
        if !types.is_empty() && !types.iter().any(is) {
            return wrong("type");
        }
        if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
            return wrong("enum");
        }
        if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
            && number < least
        {
            return wrong("minimum");
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            if value.get(name.as_str().unwrap()).is_none() {
                return wrong(&format!("{name} is missing"));
            }
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(value) = value.get(name) {
                self.fits(property, value)?;
            }
        }
        for item in value.as_array().into_iter().flatten() {
            self.fits(&schema["items"], item)?;
        }
        Ok(())
    }

    /// Returns the names of all properties of a schema, including those of its `allOf` parts.
    fn properties(&self, schema: &Value) -> Vec<String> {
        let schema = self.resolved(schema);
        let parts = schema["allOf"].as_array().into_iter().flatten();
        let of_parts = parts.flat_map(|part| self.properties(part));
        let own = schema["properties"].as_object().into_iter().flatten();
        of_parts.chain(own.map(|(name, _)| name.clone())).collect()
    }
}

#[test]
fn the_document_is_served_as_the_command_prints_it() {
    let server = TestServer::demo();
    let mut document = Document::served(&server).0;
    assert_eq!(document["openapi"], "3.1.0");
    let url = format!("http://{}", server.address());
    assert_eq!(document["servers"][0]["url"], *url);
    let mut printed = server.place.json(&["openapi"]);
    document["servers"].take();
    printed["servers"].take();
    assert_eq!(document, printed);
    let head = bare("HEAD", "/openapi.json", &[("Connection", "close")]);
    let mut connection = server.connect();
    connection.write(&head);
    assert!(connection.read_to_end_text().starts_with("HTTP/1.1 405"));
    let post = server.exchange(&bare("POST", "/openapi.json", &[]));
    post.is(405, 500, "method_not_allowed");
    assert_eq!(post.header("allow"), Some("GET"));
}

#[test]
fn the_longest_message_is_that_of_the_settings() {
    let environment = [("HELIOGRAPH_MESSAGE_PAGES_MAX", "2")];
    let server = TestServer::start(Place::new(), &["--demo"], &environment);
    let Document(document) = Document::served(&server);
    assert_eq!(document["components"]["schemas"]["Message"]["maxLength"], 320);
}

#[test]
fn answers_are_as_the_document_says() {
    let environment = [("HELIOGRAPH_REQUESTS_PER_SECOND", "1000")];
    let server = TestServer::start(Place::new(), &["--demo"], &environment);
    let document = Document::served(&server);
    let (key, test) = (server.key(), server.test_key());
    let get = |template: &str, key: &str, rest: &str| {
        let path = template.replace("{key}", key);
        document.describes("get", template, &server.get(&format!("{path}{rest}")));
    };
    let good = "?number=26657000001&message=Hi&requestid=r";
    for (key, rest) in [
        (key, good),
        (key, "?number=57000001&message=Hi&dryrun=1"),
        (key, "?number=1&message=Hi&requestid=r"),
        (test, "?number=00000501&message=Hi"),
        (test, "?number=00000502&message=Hi"),
        ("unknown", good),
    ] {
        get("/sms/send/{key}", key, rest);
    }
    let post = |template: &str, kind: &str, body: &[u8]| {
        let target = template.replace("{key}", key);
        let answer = server.exchange(&posted(&target, kind, body));
        document.describes("post", template, &answer);
        answer
    };
    post("/sms/send/{key}", "application/json", br#"{"number":"57000001","message":"Hi"}"#);
    post("/sms/send/{key}", "text/plain", b"Hi");
    post("/sms/send/{key}", "application/json", &vec![b'x'; 1_000_000]);
    let rows = multipart(&[("bulksms", b"57000001,Hi\n26657000001,Hi"), ("requestid", b"r")]);
    let accepted = post("/sms/bulk/{key}", MULTIPART, &rows);
    post("/sms/bulk/{key}", MULTIPART, &multipart(&[("bulksms", b"x\n57000001\n")]));
    post("/sms/bulk/{key}", MULTIPART, b"");
    let batchid = accepted.json()["batchid"].as_str().unwrap().to_owned();
    server.done_batch(key, &batchid);
    for rest in ["", "?status=delivered&limit=1", "?format=csv&limit=1", "?limit=0"] {
        get("/sms/reports/{key}", key, rest);
    }
    get("/sms/batches/{key}", key, "");
    get("/sms/batches/{key}", key, "?number=1");
    get("/sms/balance/{key}", key, "");
    get("/sms/balance/{key}", "unknown", "");
    let one = |template: &str, id: &str, rest: &str| {
        let path = template.replace("{key}", key);
        let path = path.replace("{transid}", id).replace("{batchid}", id);
        document.describes("get", template, &server.get(&format!("{path}{rest}")));
    };
    let transid = server.accepted(key, "57000001");
    server.final_report(key, &transid);
    for (id, rest) in
        [(transid.as_str(), ""), (&transid, "?format=csv"), (&transid, "?x=1"), ("m_x", "")]
    {
        one("/sms/reports/{key}/{transid}", id, rest);
    }
    for id in [batchid.as_str(), "b_0000000000000"] {
        one("/sms/batches/{key}/{batchid}", id, "");
    }
    answers_of_time_and_limits(&server, &document);
    let none = server.exchange(&bare("DELETE", &format!("/sms/balance/{key}"), &[]));
    document.describes("get", "/sms/balance/{key}", &none);
    let large = bare("GET", &format!("/sms/balance/{key}"), &[("X", &"x".repeat(70_000))]);
    document.describes("get", "/sms/balance/{key}", &server.exchange(&large));
}

/// Checks the answers about schedules, cancellations, limits, one-time codes and the test side.
fn answers_of_time_and_limits(server: &TestServer, document: &Document) {
    let call = |template: &str, key: &str, fields: &[(&str, &str)]| {
        let target = template.replace("{key}", key);
        let body = form(fields);
        let kind = "application/x-www-form-urlencoded";
        let answer = server.exchange(&posted(&target, kind, body.as_bytes()));
        document.describes("post", template, &answer);
        answer
    };
    let (live, test) = (server.key(), server.test_key());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let ms = i64::try_from(now.as_millis()).unwrap() + 3_600_000;
    let later = domain::Timestamp::from_unix_ms(ms).to_string();
    let scheduled = [("number", "57000001"), ("message", "Hi"), ("sendat", later.as_str())];
    let sent = call("/sms/send/{key}", live, &scheduled);
    assert_eq!(sent.json()["send_at"], later);
    let transid = sent.json()["transid"].as_str().unwrap().to_owned();
    let upload = [("bulksms", "57000001,Hi"), ("sendat", later.as_str())];
    let batchid = call("/sms/bulk/{key}", live, &upload).json()["batchid"].clone();
    let batchid = batchid.as_str().unwrap();
    for (fields, status) in [
        (&[("pause", "1")][..], 200),
        (&[("resume", "1")], 200),
        (&[("pause", "1"), ("resume", "1")], 400),
        (&[], 400),
    ] {
        let target = format!("/sms/batches/{live}/{batchid}");
        let kind = "application/x-www-form-urlencoded";
        let answer = server.exchange(&posted(&target, kind, form(fields).as_bytes()));
        assert_eq!(answer.status, status);
        document.describes("post", "/sms/batches/{key}/{batchid}", &answer);
    }
    for (id, status) in [
        (("transid", transid.as_str()), 200),
        (("transid", &transid), 409),
        (("batchid", batchid), 200),
        (("batchid", "b_0000000000000"), 404),
        (("number", "57000001"), 400),
    ] {
        assert_eq!(call("/sms/cancel/{key}", live, &[id]).status, status, "{id:?}");
    }
    document.describes("get", "/sms/limits/{key}", &server.get(&format!("/sms/limits/{live}")));
    document.describes("get", "/sms/limits/{key}", &server.get(&format!("/sms/limits/{test}")));
    call("/sms/limits/{key}", live, &[("per_recipient_hour", "5")]).is(403, 500, "limits_locked");
    let start = call("/sms/verify/start/{key}", test, &[("number", "57000001")]);
    let id = start.json()["verifyid"].as_str().unwrap().to_owned();
    let check = "/sms/verify/check/{key}";
    for (path, fields, status) in [
        ("/sms/verify/start/{key}", &[("verifyid", id.as_str())][..], 429),
        ("/sms/verify/start/{key}", &[("number", "x")], 400),
        ("/sms/verify/start/{key}", &[("verifyid", "v_0000000000000")], 404),
        (check, &[("verifyid", &id), ("otp", "000000")], 200),
        (check, &[("verifyid", &id), ("otp", "987654")], 200),
        (check, &[("verifyid", &id), ("otp", "987654")], 200),
        (check, &[("verifyid", "x"), ("otp", "987654")], 200),
        (check, &[("verifyid", &id), ("otp", "1")], 400),
        ("/sms/verify/start/{key}", &[("verifyid", &id)], 409),
        ("/sms/test/clock/{key}", &[("advance", "60")], 200),
        ("/sms/test/clock/{key}", &[("advance", "-1")], 400),
        (
            "/sms/test/inbound/{key}",
            &[("number", "57000001"), ("recipient", "50000001"), ("message", "Hi")],
            200,
        ),
        ("/sms/test/inbound/{key}", &[("number", "57000001")], 400),
    ] {
        assert_eq!(call(path, test, fields).status, status, "{path} {fields:?}");
    }
    call("/sms/test/clock/{key}", live, &[("advance", "1")]).is(403, 500, "test_key_required");
}

#[test]
fn the_parameters_of_reports_are_those_that_are_known() {
    let server = TestServer::demo();
    let document = Document::served(&server);
    let ids = [("{transid}", "m_0000000000000"), ("{batchid}", "b_0000000000000")];
    for template in [
        "/sms/reports/{key}",
        "/sms/reports/{key}/{transid}",
        "/sms/batches/{key}",
        "/sms/batches/{key}/{batchid}",
    ] {
        let parameters = document.0["paths"][template]["get"]["parameters"].as_array().unwrap();
        let documented: Vec<&str> = parameters
            .iter()
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        let known = match documented[..] {
            [] => "There are none.".to_owned(),
            _ => format!("Known parameters: {}.", documented.join(", ")),
        };
        let path = template.replace("{key}", server.key());
        let path = ids.iter().fold(path, |path, (name, id)| path.replace(name, id));
        let words = server.get(&format!("{path}?colour=blue")).text();
        assert!(words.contains(&known), "{template}: {known} {words}");
    }
}

#[test]
fn examples_fit_their_schemas() {
    let server = TestServer::demo();
    let document = Document::served(&server);
    let mut count = 0;
    for operations in document.0["paths"].as_object().unwrap().values() {
        for operation in operations.as_object().unwrap().values() {
            for response in operation["responses"].as_object().unwrap().values() {
                let content = &response["content"]["application/json"];
                let examples = content["examples"].as_object().into_iter().flatten();
                let shared = examples.map(|(_, example)| &document.resolved(example)["value"]);
                for example in content.get("example").into_iter().chain(shared) {
                    assert_eq!(document.fits(&content["schema"], example), Ok(()));
                    count += 1;
                }
            }
        }
    }
    assert!(count > 200, "{count}");
}

#[test]
fn answers_have_no_field_that_the_document_lacks() {
    let server = TestServer::demo();
    let document = Document::served(&server);
    let key = server.key();
    let transid = server.accepted(key, "57000001");
    let batchid = server.accepted_batch(key, "57000001");
    let schemas = &document.0["components"]["schemas"];
    for (schema, value) in [
        ("Sent", server.send(key, &[("number", "57000001"), ("message", "Hi")]).json()),
        ("Error", server.send(key, &[]).json()),
        ("DetailedReport", server.report(key, &transid)),
        ("Report", server.reports(key, "")[0].clone()),
        ("Batch", server.batch(key, &batchid)),
        ("Balance", server.get(&format!("/sms/balance/{key}")).json()),
    ] {
        let known = document.properties(&schemas[schema]);
        for name in value.as_object().unwrap().keys() {
            assert!(known.contains(name), "{schema} has no {name}: {known:?}");
        }
    }
}

#[test]
fn a_body_is_required_where_nothing_works_without_one() {
    let server = TestServer::demo();
    let Document(document) = Document::served(&server);
    for (template, query, status) in [
        ("/sms/send/{key}", "?number=57000001&message=Hi", 200),
        ("/sms/bulk/{key}", "?message=Hi", 400),
    ] {
        let body = &document["paths"][template]["post"]["requestBody"];
        assert_eq!(body["required"] == true, status == 400, "{template}");
        let target = template.replace("{key}", server.key());
        let request = bare("POST", &format!("{target}{query}"), &[("Content-Length", "0")]);
        assert_eq!(server.exchange(&request).status, status, "{template}");
    }
}

#[test]
fn times_are_written_as_the_document_says() {
    let server = TestServer::demo();
    let Document(document) = Document::served(&server);
    let pattern = &document["components"]["schemas"]["Since"]["pattern"];
    let pattern = regex::Regex::new(pattern.as_str().unwrap()).unwrap();
    for text in [
        "2026-11-21",
        "2026-11-21T08:30:00Z",
        "2026-11-21t08:30:00z",
        "2026-11-21T23:59:59.123456789Z",
        "2026-11-21T08:30:00+02:00",
        "2026-11-21T08:30:00-23:59",
        "2026-11-21T08:30:00 02:00",
        "2026-13-21",
        "2026-00-21",
        "2026-11-32",
        "2026-11-00",
        "26-11-21",
        "2026-11-21T24:00:00Z",
        "2026-11-21T08:60:00Z",
        "2026-11-21T08:30:61Z",
        "2026-11-21T08:30:00",
        "2026-11-21T08:30Z",
        "2026-11-21 08:30:00Z",
        "2026-11-21+08:30:00Z",
        "2026-11-21508:30:00Z",
        "2026-11-21T08:30:00.Z",
        "2026-11-21T08:30:00+24:00",
        "2026-11-21T08:30:00+0200",
        "20261121",
        " 2026-11-21",
    ] {
        let query = form(&[("from", text)]);
        let answer = server.get(&format!("/sms/reports/{}?{query}", server.key()));
        assert_eq!(answer.status == 200, pattern.is_match(text), "{text:?}: {}", answer.text());
    }
}
