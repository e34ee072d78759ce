//! Receipts that an upstream posts.

use serde_json::{Value, json};

use super::super::receipt::{HttpReceipt, NoReceipt, ReceiptState, fields, receipt};
use super::{QUERY, RULES, settings};
use crate::config::carriers::ReceiptSettings;

const RECEIPT: &str = "[carrier.receipt]\nmessage_id = \"id\"\nstatus = \"status\"\n\
    error = \"err\"\ndelivered = [\"DELIVRD\", 1]\nfailed = [\"UNDELIV\", \"REJECTD\"]\n\
    expired = \"EXPIRED\"\nenroute = \"ENROUTE\"\nerrors = { 27 = \"handset_unavailable\", \
    REJECTD = \"rejected_by_network\" }\nsecret = \"hidden-0123456789\"\n";

fn of(lines: &str) -> Result<ReceiptSettings, String> {
    let text = format!("{QUERY}{RULES}{lines}").replace("$PORT", "1");
    settings(&text).map(|settings| settings.receipt.unwrap())
}

fn read(settings: &ReceiptSettings, pairs: &[(&str, &str)]) -> Result<HttpReceipt, NoReceipt> {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    receipt(settings, &fields(pairs))
}

#[test]
fn statuses_are_read_from_parameters() {
    let settings = of(RECEIPT).unwrap();
    assert_eq!(settings.secret.expose(), "hidden-0123456789");
    for (status, code, state, error) in [
        ("DELIVRD", "27", ReceiptState::Delivered, None),
        ("1", "27", ReceiptState::Delivered, None),
        ("UNDELIV", "27", ReceiptState::Failed, Some("handset_unavailable_27")),
        ("UNDELIV", "028", ReceiptState::Failed, Some("undeliverable_028")),
        ("UNDELIV", "", ReceiptState::Failed, Some("undeliverable")),
        ("UNDELIV", "000", ReceiptState::Failed, Some("undeliverable")),
        ("UNDELIV", "34 imsi:651", ReceiptState::Failed, Some("undeliverable")),
        ("UNDELIV", "651011234567890", ReceiptState::Failed, Some("undeliverable")),
        ("REJECTD", "27", ReceiptState::Failed, Some("handset_unavailable_27")),
        ("REJECTD", "9", ReceiptState::Failed, Some("rejected_by_network_9")),
        ("EXPIRED", "27", ReceiptState::Expired, Some("handset_unavailable_27")),
        ("EXPIRED", "x", ReceiptState::Expired, Some("validity_expired_x")),
        ("ENROUTE", "27", ReceiptState::Enroute, None),
        ("delivrd", "27", ReceiptState::Unknown, Some("27")),
    ] {
        let pairs = [("id", "a-1"), ("status", status), ("err", code), ("x", "y")];
        let wanted = HttpReceipt {
            message_id: "a-1".to_owned(),
            status: status.to_owned(),
            state,
            error: error.map(str::to_owned),
        };
        assert_eq!(read(&settings, &pairs), Ok(wanted), "{status} {code}");
    }
}

#[test]
fn a_receipt_names_a_message_and_a_status() {
    let settings = of(RECEIPT).unwrap();
    for pairs in [
        &[][..],
        &[("id", "a-1")],
        &[("status", "DELIVRD")],
        &[("id", ""), ("status", "DELIVRD")],
        &[("ID", "a-1"), ("status", "DELIVRD")],
    ] {
        let found = read(&settings, pairs);
        assert_eq!(found, Err(NoReceipt::Incomplete), "{pairs:?}");
    }
    for body in [Value::Null, json!([1]), json!({"id": {"id": 1}, "status": 1})] {
        let found = receipt(&settings, &body);
        assert_eq!(found, Err(NoReceipt::Incomplete), "{body}");
    }
    // The same value again doesn't make another receipt.
    let pairs = [("id", "a"), ("id", "a"), ("status", "1"), ("x", "1"), ("x", "2")];
    assert_eq!(read(&settings, &pairs).unwrap().message_id, "a");
}

#[test]
fn several_receipts_are_refused() {
    let by_name = of(RECEIPT).unwrap();
    for pairs in [
        &[("id", "a"), ("id", "b"), ("status", "1")][..],
        &[("id", "a"), ("status", "1"), ("id", "a"), ("status", "DELIVRD")],
        &[("id", "a"), ("id", "b"), ("id", "c"), ("status", "1")],
    ] {
        let found = read(&by_name, pairs);
        assert_eq!(found, Err(NoReceipt::Several), "{pairs:?}");
    }
    let at = |id: &str, status: &str| {
        let lines = RECEIPT
            .replace("\"id\"", &format!("\"{id}\""))
            .replace("\"status\"", &format!("\"{status}\""));
        of(&lines).unwrap()
    };
    let one = json!({"id": "a", "status": "DELIVRD"});
    let two = json!([one, one]);
    for (settings, body) in [
        (&by_name, two.clone()),
        (&by_name, json!({"id": ["a", "b"], "status": 1})),
        (&at("/0/id", "/0/status"), two.clone()),
        (&at("/r/0/id", "/r/0/status"), json!({"r": two})),
        (&at("/r/0/s/1/id", "/t"), json!({"r": [{"s": two}], "t": 1})),
        (&at("/id", "/s/0"), json!({"id": "a", "s": ["DELIVRD", "UNDELIV"]})),
    ] {
        let found = receipt(settings, &body);
        assert_eq!(found, Err(NoReceipt::Several), "{body}");
    }
    assert!(receipt(&at("/r/0/id", "/r/0/status"), &json!({"r": [one]})).is_ok());
}

#[test]
fn json_is_read_by_name_or_pointer() {
    let settings = of(&RECEIPT
        .replace("\"id\"", "\"/results/0/id\"")
        .replace("\"err\"", "\"/results/0/error/code\""))
    .unwrap();
    let body = json!({"results": [{"id": 77, "error": {"code": 5}}], "status": "UNDELIV"});
    let wanted = HttpReceipt {
        message_id: "77".to_owned(),
        status: "UNDELIV".to_owned(),
        state: ReceiptState::Failed,
        error: Some("undeliverable_5".to_owned()),
    };
    assert_eq!(receipt(&settings, &body), Ok(wanted));
}

#[test]
fn a_wrong_setting_of_receipts_is_named() {
    for (from, to, named) in [
        ("\"hidden-0123456789\"", "\"hidden\"", "at least 16"),
        ("\"hidden-0123456789\"", "\"hidden/0123456789\"", "at least 16"),
        ("secret = \"hidden-0123456789\"\n", "", "secret (or secret_file) is missing"),
        ("message_id = \"id\"\n", "", "message_id is missing"),
        ("status = \"status\"\n", "", "status is missing"),
        ("status = \"status\"", "status = \"\"", "status must be"),
        ("delivered = [\"DELIVRD\", 1]\n", "", "delivered is missing"),
        ("\"REJECTD\"", "\"DELIVRD\"", "is listed twice"),
        ("\"REJECTD\"", "[1, [{}]]", "failed must be a list"),
        ("error =", "reason =", "unknown setting reason"),
        ("\"ENROUTE\"", "\"EXPIRED\"", "is listed twice"),
        ("\"handset_unavailable\"", "\"handset\"", "errors.27 must be one of"),
        ("[carrier.receipt]", "[[carrier.receipt]]", "receipt must be a table"),
    ] {
        let error = of(&RECEIPT.replace(from, to)).unwrap_err();
        assert!(error.contains(named), "{from} -> {to}: {error}");
        assert!(!error.contains("hidden"), "{error}");
    }
    let without_ids = format!("{QUERY}{RULES}{RECEIPT}")
        .replace("$PORT", "1")
        .replace("message_id = \"/id\"\n", "");
    let error = settings(&without_ids).unwrap_err();
    assert!(error.contains("needs an answer with message_id"), "{error}");
}
