use super::*;

#[test]
fn segments_are_keys_and_ids() {
    for (path, in_header, key, id) in [
        ("/sms/send", false, None, None),
        ("/sms/send/", false, None, None),
        ("/sms/send/k", false, Some("k"), None),
        ("/sms/send/m_0", true, Some("m_0"), None),
        ("/sms/test/inbound", true, None, None),
        ("/sms/test/inbound/k", false, Some("k"), None),
        ("/sms/verify/check/k", false, Some("k"), None),
        ("/sms/reports/m_0", false, None, Some("m_0")),
        ("/sms/reports/b_0", false, None, Some("b_0")),
        ("/sms/reports/k", false, Some("k"), None),
        ("/sms/reports/k", true, None, Some("k")),
        ("/sms/reports/1k", true, Some("1k"), None),
        ("/sms/reports/", true, None, None),
        ("/sms/reports/k/m_0", true, Some("k"), Some("m_0")),
        ("/sms/reports/m_1/m_0", false, Some("m_1"), Some("m_0")),
        ("/sms/batches/b_0", false, None, Some("b_0")),
        ("/sms/batches/B_0", true, None, Some("B_0")),
        ("/sms/batches/k/b_0", false, Some("k"), Some("b_0")),
    ] {
        assert_eq!(segments(path, in_header), (key, id), "{path} {in_header}");
    }
}

#[test]
fn a_key_in_the_path_must_be_that_of_the_header() {
    for (segment, header, key) in [
        (None, None, None),
        (None, Some("h"), Some("h")),
        (Some("h"), None, Some("h")),
        (Some("h"), Some("h"), Some("h")),
        (Some("%68"), Some("h"), Some("h")),
        (Some("k"), Some("h"), Some("")),
        (Some("%FF"), Some("h"), Some("")),
        (Some("%FF"), None, Some("")),
        (Some("a%2Fb"), None, Some("a/b")),
    ] {
        let header = header.map(|text| KeyText::Given(text.to_owned()));
        let found = KeyText::find(segment, header);
        assert_eq!(found.as_deref(), key, "{segment:?}");
    }
}

#[test]
fn the_api_owns_its_prefix_and_no_more() {
    for (path, inside) in [
        ("/sms", true),
        ("/sms/", true),
        ("/sms/x", true),
        ("//sms", true),
        ("//sms/send/k", true),
        ("/openapi.json", true),
        ("/openapi", false),
        ("/smsx", false),
        ("//smsx", false),
        ("sms/x", false),
        ("/", false),
        ("//", false),
        ("", false),
    ] {
        assert_eq!(is_in(path), inside, "{path}");
    }
}
