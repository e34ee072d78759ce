//! `/sms/limits` over HTTP, and the limits that depend on where a request comes from.

use domain::limits::LimitsChange;
use domain::{KeyKind, LimitField, Reference};
use serde_json::{Value, json};
use service::LimitsAuthor;

use crate::client::{Answer, bare, encode, form, posted};
use crate::harness::{Keys, TestServer, until};

const FORM: &str = "application/x-www-form-urlencoded";

/// Sets limits as the owner does in the portal.
fn limit(server: &TestServer, keys: &Keys, limits: &[(LimitField, &str)], by_api: bool) {
    let mut change = LimitsChange::by_api(by_api);
    for (field, text) in limits {
        change.add(*field, text).unwrap();
    }
    let (reference, author): (Reference, _) =
        (keys.reference, LimitsAuthor::Owner(keys.account_id));
    server.place.with_service(async |service| {
        service.applications().change_limits(reference, author, change).await.unwrap();
    });
}

fn path(key: &str) -> String {
    format!("/sms/limits/{key}")
}

fn limits_of(answer: &Answer) -> Value {
    answer.is(200, 200, "");
    answer.json()["limits"].clone()
}

#[test]
fn limits_are_shown_and_changed() {
    let server = TestServer::demo();
    let keys = server.place.funded("limits@example.org", "10");
    let (key, test_key) = (keys.live.expose(), keys.test.expose());
    let defaults = json!({
        "international": "allowed", "prefixes": null, "per_recipient_hour": null,
        "per_recipient_day": null, "spend_per_day": null, "addresses": null,
        "refuse_doubtful": null, "quiet_hours": null, "traffic_pumping": "alarm",
        "traffic_pumping_messages": 50, "leaked_key": "alarm"
    });
    assert_eq!(limits_of(&server.get(&path(key))), defaults);
    server.get(&path(test_key)).is(403, 500, "limits_locked");
    server.get(&format!("{}?x=1", path(key))).is(400, 500, "invalid_parameter");
    let change = form(&[("spend_per_day", "0.1"), ("prefixes", "27, +49")]);
    let post = |key: &str| server.exchange(&posted(&path(key), FORM, change.as_bytes()));
    post(key).is(403, 500, "limits_locked");
    // The body never arrives.
    let unread = [("Content-Length", "10"), ("Content-Type", FORM)];
    server.exchange(&bare("POST", &path(key), &unread)).is(403, 500, "limits_locked");
    limit(&server, &keys, &[], true);
    post(test_key).is(403, 500, "limits_locked");
    let changed = limits_of(&post(key));
    assert_eq!(
        (&changed["spend_per_day"], &changed["prefixes"]),
        (&json!(0.1), &json!(["27", "49"]))
    );
    let body = br#"{"refuse_doubtful": true, "prefixes": "", "international": "off"}"#;
    let changed = limits_of(&server.exchange(&posted(&path(key), "application/json", body)));
    assert_eq!(changed, limits_of(&server.get(&path(key))));
    assert_eq!((&changed["refuse_doubtful"], &changed["prefixes"]), (&json!(true), &Value::Null));
    let json =
        |body: &str| server.exchange(&posted(&path(key), "application/json", body.as_bytes()));
    let numbers = r#"{"per_recipient_day": 7, "spend_per_day": 0.1, "refuse_doubtful": false}"#;
    let changed = limits_of(&json(numbers));
    let fields = ["per_recipient_day", "spend_per_day", "refuse_doubtful"].map(|it| &changed[it]);
    assert_eq!(fields, [&json!(7), &json!(0.1), &Value::Null]);
    for nothing in ["{}", r#"{"per_recipient_day": null}"#] {
        json(nothing).is(400, 500, "missing_parameter");
    }
    for wrong in [r#"{"per_recipient_day": 1e2}"#, r#"{"prefixes": ["27"]}"#] {
        json(wrong).is(400, 500, "invalid_parameter");
    }
    // A key that shuts itself out couldn't undo it.
    let shut = json(r#"{"addresses": "192.0.2.0/24"}"#);
    shut.is(400, 500, "invalid_parameter");
    assert!(shut.text().contains("the address of this request, 127.0.0.1;"), "{}", shut.text());
    limits_of(&json(r#"{"addresses": "192.0.2.0/24,127.0.0.1", "per_recipient_day": ""}"#));
    let changed = limits_of(&json(r#"{"addresses": ""}"#));
    for wrong in [
        "per_recipient_hour=0",
        "leaked_key=on",
        "addresses=example.org",
        "spendperday=1",
        "quiet_hours=21:00-21:00",
        "quiet_hours=9-17",
    ] {
        let refused = server.exchange(&posted(&path(key), FORM, wrong.as_bytes()));
        refused.is(400, 500, "invalid_parameter");
    }
    assert_eq!(limits_of(&server.get(&path(key))), changed);
    let send = |number: &str| server.send(key, &[("number", number), ("message", "Hi")]);
    send("4915112345678").is(403, 500, "international_disabled");
    for _ in 0..2 {
        send("57000001").is(200, 200, "");
    }
    let refused = send("57000001");
    refused.is(429, 500, "spend_cap_reached");
    let seconds: i64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_401).contains(&seconds), "{seconds}");
    server.exchange(&posted(&path(key), FORM, b"spend_per_day=&per_recipient_hour=2"));
    let refused = send("57000001");
    refused.is(429, 500, "recipient_flooded");
    assert_eq!(refused.header("retry-after"), Some("3600"));
    server.place.check();
}

#[test]
fn a_message_in_quiet_hours_is_scheduled_for_their_end() {
    let server = TestServer::demo();
    let keys = server.place.funded("quiet@example.org", "10");
    let key = keys.live.expose();
    limit(&server, &keys, &[], true);
    // The whole day except a minute, so that the test can run at any other time.
    let now = server.get(&format!("/sms/balance/{key}")).header("date").unwrap().to_owned();
    let hour: u32 = now[17..19].parse().unwrap();
    let (to, from) = ((hour + 12) % 24, (hour + 12) % 24);
    let hours = format!("{from:02}:01-{to:02}:00");
    let change = form(&[("quiet_hours", &hours)]);
    let changed = limits_of(&server.exchange(&posted(&path(key), FORM, change.as_bytes())));
    let shown = json!({"from": format!("{from:02}:01"), "to": format!("{to:02}:00")});
    assert_eq!(changed["quiet_hours"], shown);
    let is_at_end = |answer: &Answer| {
        answer.is(200, 200, "");
        let answer = answer.json();
        let at = answer["send_at"].as_str().unwrap().to_owned();
        assert_eq!(at[11..], format!("{to:02}:00:00.000Z"), "{at}");
        answer
    };
    is_at_end(&server.send(key, &[("number", "57000001"), ("message", "Hi"), ("dryrun", "1")]));
    let sent = is_at_end(&server.send(key, &[("number", "57000001"), ("message", "Hi")]));
    let report = format!("/sms/reports/{key}/{}", sent["transid"].as_str().unwrap());
    let report = server.get(&report).json()["report"].clone();
    assert_eq!((&report["status"], &report["send_at"]), (&json!("scheduled"), &sent["send_at"]));
    let file = form(&[("bulksms", "57000001,Hi\n")]);
    is_at_end(&server.exchange(&posted(&format!("/sms/bulk/{key}"), FORM, file.as_bytes())));
    server.exchange(&posted(&path(key), FORM, b"quiet_hours="));
    let sent = server.send(key, &[("number", "57000001"), ("message", "Hi")]);
    sent.is(200, 200, "");
    assert_eq!(sent.json()["send_at"], Value::Null);
    server.place.check();
}

#[test]
fn keys_work_from_the_listed_addresses_whatever_a_client_claims() {
    let trusted = [("HELIOGRAPH_TRUSTED_PROXIES", "192.0.2.1")];
    let place = crate::harness::Place::new();
    let server = TestServer::start(place, &["--demo"], &trusted);
    let keys = server.place.funded("addresses@example.org", "10");
    limit(&server, &keys, &[(LimitField::Addresses, "198.51.100.0/24")], true);
    let (key, forged) = (keys.live.expose(), [("X-Forwarded-For", "198.51.100.7")]);
    let query = format!("number=57000001&message={}", encode("Hi"));
    for headers in [&[][..], &forged] {
        for target in [
            format!("/sms/send/{key}?{query}"),
            format!("/sms/send/{key}?number=x"),
            format!("/sms/balance/{key}"),
            path(key),
        ] {
            let refused = server.exchange(&bare("GET", &target, headers));
            refused.is(403, 500, "address_not_allowed");
        }
        // The body never arrives.
        let unread = [("Content-Length", "10"), ("Content-Type", FORM)];
        for target in [format!("/sms/send/{key}"), format!("/sms/bulk/{key}"), path(key)] {
            let refused = server.exchange(&bare("POST", &target, &[headers, &unread].concat()));
            refused.is(403, 500, "address_not_allowed");
        }
    }
    limit(&server, &keys, &[(LimitField::Addresses, "127.0.0.0/8")], true);
    server.send(key, &[("number", "57000001"), ("message", "Hi")]).is(200, 200, "");
}

#[test]
fn an_address_behind_a_trusted_proxy_counts() {
    let server = TestServer::demo();
    let keys = server.place.funded("proxy@example.org", "10");
    limit(&server, &keys, &[(LimitField::Addresses, "198.51.100.7")], true);
    let target = format!("/sms/balance/{}", keys.live.expose());
    let from =
        |address: &str| server.exchange(&bare("GET", &target, &[("X-Forwarded-For", address)]));
    from("198.51.100.7").is(200, 200, "");
    from("198.51.100.8").is(403, 500, "address_not_allowed");
    // Only the last address is the proxy's word.
    from("198.51.100.7, 203.0.113.9").is(403, 500, "address_not_allowed");
}

#[test]
fn a_leaked_key_causes_an_alarm_and_can_be_blocked() {
    let server = TestServer::demo();
    let keys = server.place.funded("leak@example.org", "10");
    let (key, test_key) = (keys.live.expose(), keys.test.expose());
    server.get(&format!("/sms/events/{key}")).is(200, 200, "");
    let signs: [&[(&str, &str)]; 4] = [
        &[("Referer", "https://shop.example/")],
        &[("Sec-Fetch-Mode", "navigate")],
        &[("User-Agent", "WhatsApp/2.23.20")],
        &[("X-Forwarded-Proto", "http")],
    ];
    let balance = |key: &str, headers: &[(&str, &str)]| {
        server.exchange(&bare("GET", &format!("/sms/balance/{key}"), headers))
    };
    for sign in signs {
        balance(key, sign).is(200, 200, "");
        balance(test_key, sign).is(200, 200, "");
    }
    let events = until("the alarm", || {
        let found = server.get(&format!("/sms/events/{key}?type=limit.alarm")).json();
        found["events"].as_array().cloned().filter(|events| !events.is_empty())
    });
    let [alarm] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(
        (&alarm["data"]["limit"], &alarm["data"]["example"]),
        (&json!("leaked_key"), &Value::Null)
    );
    let detail = alarm["data"]["detail"].as_str().unwrap();
    assert!(detail.ends_with("It came from 127.0.0.1."), "{alarm}");
    let owner = keys.account_id;
    let shown = server.place.with_service(async |service| {
        service.applications().alarms(owner, keys.reference).await.unwrap()
    });
    let detail = shown[0].detail.clone().unwrap();
    assert!(detail.ends_with("It came from 127.0.0.1."), "{detail}");
    limit(&server, &keys, &[(LimitField::LeakedKey, "block")], true);
    for sign in signs {
        balance(key, sign).is(403, 500, "leaked_key");
        balance(test_key, sign).is(200, 200, "");
        let target = format!("/sms/send/{key}?number=57000001&message=Hi");
        server.exchange(&bare("GET", &target, sign)).is(403, 500, "leaked_key");
    }
    // The body never arrives.
    let unread = [("Content-Length", "10"), ("Content-Type", FORM), signs[0][0]];
    let target = format!("/sms/bulk/{key}");
    server.exchange(&bare("POST", &target, &unread)).is(403, 500, "leaked_key");
    balance(key, &[]).is(200, 200, "");
    assert_eq!(server.balance(key), "10");
    let refused = until("the counts", || {
        let counts = server.place.with_service(async |service| {
            service.applications().limit_refusals(owner, keys.reference).await.unwrap()
        });
        let (reason, count) = counts.into_iter().next()?;
        (count == 9).then_some(reason)
    });
    assert_eq!(refused, "leaked_key");
    limit(&server, &keys, &[(LimitField::LeakedKey, "off")], true);
    balance(key, signs[0]).is(200, 200, "");

    // Once the key is replaced, the alarm about it is over.
    let shown = server.place.with_service(async |service| {
        let applications = service.applications();
        let (reference, password) = (keys.reference, "correct horse battery");
        let replaced =
            applications.replace_key(owner, reference, KeyKind::Live, password, "", None).await;
        replaced.unwrap();
        applications.alarms(owner, reference).await.unwrap()
    });
    assert!(shown.is_empty(), "{shown:?}");
}
