//! All kinds of texts arrive as they were sent, in as many segments as reports say.

use crate::peer::{Kind, Received};
use crate::sending::{Carrier, Sending};
use crate::with_both_peers;

/// The sender name of an application without one.
const DEFAULT_SENDER: &str = "Heliograph";
/// Every character of the GSM default alphabet and its extension, 147 septets.
const ALPHABET: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?\
    ¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà\u{c}^{}\\[~]|€";

with_both_peers!(
    every_text_arrives_as_it_was_sent,
    segments_are_joined_in_the_way_that_the_carrier_wants,
    numbers_and_sender_names_are_written_in_the_carriers_form,
);

/// Texts and their numbers of segments.
fn texts() -> Vec<(String, u64)> {
    vec![
        ("Hello".to_owned(), 1),
        (ALPHABET.to_owned(), 1),
        ("a".repeat(160), 1),
        ("€".repeat(80), 1),
        ("a".repeat(161), 2),
        // The escape of "€" would be the last septet of a segment.
        (format!("{}€{}", "a".repeat(152), "b".repeat(151)), 2),
        // Three pages.
        ("Three pages. ".repeat(37)[..480].to_owned(), 4),
        // Similar to a character of the alphabet, but not in it.
        ("ç".to_owned(), 1),
        ("ж".repeat(70), 1),
        ("ж".repeat(71), 2),
        // The end of a segment would split a surrogate pair.
        (format!("{}😀{}", "ж".repeat(66), "ж".repeat(65)), 2),
        (format!("{}😀{}", "ж".repeat(66), "ж".repeat(66)), 3),
        ("👩‍👩‍👧‍👦".repeat(20), 4),
        ("日本語のテキスト".repeat(20), 3),
        // Ten pages of the characters that need the most segments.
        ("😀".repeat(1600), 49),
    ]
}

fn every_text_arrives_as_it_was_sent(kind: Kind) {
    let sending = Sending::start(kind, Carrier::default());
    let texts = texts();
    let sent: Vec<String> = texts.iter().map(|(text, _)| sending.send("57000001", text)).collect();
    let mut submits = 0;
    for (transid, (text, segments)) in sent.iter().zip(&texts) {
        let report = sending.final_report(transid);
        assert_eq!(report["status"], "delivered", "{report}");
        assert_eq!(report["message"], text.as_str());
        assert_eq!(report["segments"], *segments, "{report}");
        submits += usize::try_from(*segments).unwrap();
    }
    let received = sending.peer.received("26657000001");
    for (text, segments) in &texts {
        let same: Vec<&Received> = received.iter().filter(|one| one.text == *text).collect();
        assert_eq!(same.len(), 1, "{text:?} came {} times", same.len());
        assert_eq!(same[0].submits as u64, *segments, "{text:?}");
        assert_eq!(same[0].source, DEFAULT_SENDER);
    }
    assert_eq!(received.len(), texts.len(), "nothing else came");
    sending.answered_receipts(submits);
    sending.stop();
}

fn segments_are_joined_in_the_way_that_the_carrier_wants(kind: Kind) {
    let gsm = "{0123456789}".repeat(30);
    let ucs2 = "Привет, 😀! ".repeat(20);
    for way in ["udh", "sar", "payload"] {
        let carrier = Carrier { more: &format!("segmentation = \"{way}\""), ..Carrier::default() };
        let sending = Sending::start(kind, carrier);
        let sent = [&gsm, &ucs2].map(|text| sending.send("57000001", text));
        for transid in &sent {
            assert_eq!(sending.final_report(transid)["status"], "delivered", "{way}");
        }
        let submits = sending.peer.submits_to("26657000001");
        for submit in &submits {
            let payload = way == "payload";
            assert_eq!(submit["payload"], payload, "{way}: {submit}");
            assert_eq!(submit["segment"].is_null(), payload, "{way}: {submit}");
            if !payload {
                assert_eq!(submit["segment"]["by"], way, "{submit}");
            }
        }
        let mut received = sending.peer.received("26657000001");
        received.sort_by_key(|one| one.text.len());
        let texts: Vec<&String> = received.iter().map(|one| &one.text).collect();
        assert_eq!(texts, [&gsm, &ucs2], "{way}");
        sending.stop();
    }
}

fn numbers_and_sender_names_are_written_in_the_carriers_form(kind: Kind) {
    let sending = Sending::start(kind, Carrier::default());
    let place = &sending.server.place;
    let named = place.application("b@example.org", domain::Category::Sms, Some("Acme"));
    let reference = named.reference.to_string();
    place.json(&["application", "approve", &reference]);
    place.json(&["deposit", "add", &reference, "10", "--bank-id", "b"]);
    let id = place.json(&["sender", "list"])[0]["id"].to_string();
    place.json(&["sender", "accept", &id]);
    let key = named.live.expose();
    for (number, destination) in [
        ("57000001", "26657000001"),
        // International numbers are submitted unchanged.
        ("+4915112345678", "4915112345678"),
        ("26658000001", "26658000001"),
        ("+12025550100", "12025550100"),
    ] {
        let transid = sending.server.accepted(key, number);
        let report = sending.server.final_report(key, &transid);
        assert_eq!(report["status"], "delivered", "{number}: {report}");
        assert_eq!(report["sender"], "Acme", "{number}: {report}");
        let submits = sending.peer.submits_to(destination);
        assert_eq!(submits.len(), 1, "{number}: {submits:?}");
        // A name has TON 5. A number with a country code has TON 1 and NPI 1.
        let source = &submits[0]["source"];
        assert_eq!((&source["digits"], &source["ton"]), (&"Acme".into(), &5.into()));
        let to = &submits[0]["destination"];
        assert_eq!((&to["ton"], &to["npi"]), (&1.into(), &1.into()), "{number}");
        assert_eq!(submits[0]["registered_delivery"], 1, "{number}");
    }
    sending.stop();
}
