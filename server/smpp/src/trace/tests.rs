use super::*;

/// Encodes a PDU.
fn pdu(command: u32, status: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + body.len()).unwrap();
    let header = [length, command, status, 7].into_iter().flat_map(u32::to_be_bytes);
    header.chain(body.iter().copied()).collect()
}

fn message(command: u32, esm_class: u8, text: &[u8], tlvs: &[u8]) -> Vec<u8> {
    let mut body = b"\x00\x01\x0126657000001\x00\x05\x00Acme\x00".to_vec();
    body.extend([esm_class, 0, 0, 0, 0, 1, 0, 0, 0, u8::try_from(text.len()).unwrap()]);
    body.extend_from_slice(text);
    body.extend_from_slice(tlvs);
    pdu(command, 0, &body)
}

fn shown(octets: Vec<u8>, all: bool) -> String {
    let mut pdu = TracedPdu { source: 1, link: 0, sent: true, octets };
    pdu.mask(all);
    describe(&pdu.octets)
}

#[test]
fn numbers_and_texts_are_hidden_unless_asked_for() {
    let vendor = b"\x14\x00\x00\x0326\x00";
    let submit = message(4, 0, b"Hello", vendor);
    let hidden = shown(submit.clone(), false);
    for part in [
        "submit_sm seq=7",
        "source_addr=\"********001\"",
        "destination_addr=\"Acme\"",
        "short_message=\"*****\"",
        "tlv_0x1400=\"***\"",
    ] {
        assert!(hidden.contains(part), "{part}: {hidden}");
    }
    let all = shown(submit, true);
    assert!(all.contains("26657000001") && all.contains("Hello"), "{all}");
    let part = shown(message(4, 0x40, b"\x05\x00\x03\x01\x02\x01Hello", b""), false);
    assert!(part.contains(r#"short_message="\x05\x00\x03\x01\x02\x01*****""#), "{part}");
    let receipt = shown(message(5, 4, b"id:1 stat:DELIVRD Text:Hello", b""), false);
    assert!(receipt.contains("\"id:1 stat:DELIVRD Text:*****\""), "{receipt}");
    // Even when texts are shown, and even if the carrier doesn't mark the receipt as one.
    for (esm_class, text, all) in [
        (4, "id:1 text:123456", true),
        (0, "id:1 text:123456", true),
        (0, "id:1 text:123456", false),
        (0, "t\0e\0x\0t\0:\x001\x002\x003\x004\x005\x006", true),
    ] {
        let receipt = shown(message(5, esm_class, text.as_bytes(), b""), all);
        assert!(!receipt.contains("3456") && !receipt.contains("4\\x005"), "{receipt}");
    }
    let sent = shown(message(4, 0, b"Text: me", b""), true);
    assert!(sent.contains("\"Text: me\""), "{sent}");
    for (esm_class, text) in [(0x10, "Yes text:me"), (8, "Yes"), (4, "to 26657000001: done")] {
        let hidden = shown(message(5, esm_class, text.as_bytes(), b""), false);
        let stars = "*".repeat(text.len());
        assert!(hidden.contains(&format!("short_message=\"{stars}\"")), "{hidden}");
    }
}

#[test]
fn a_password_is_never_shown() {
    let bind = pdu(9, 0, b"heliograph\0hidden\0\0\x34\0\0\0");
    for all in [false, true] {
        let shown = shown(bind.clone(), all);
        assert!(shown.contains("system_id=\"heliograph\""), "{shown}");
        assert!(shown.contains("password=\"******\""), "{shown}");
    }
}

#[test]
fn what_cannot_be_read_is_hidden() {
    let submit = message(4, 0, b"Hello", b"");
    for end in HEADER..submit.len() {
        let cut = shown(submit[..end].to_vec(), false);
        assert!(!cut.contains("26657") && !cut.contains('H'), "{cut}");
    }
    assert_eq!(shown(pdu(0x77, 0, b"secret"), false), "command 0x00000077 seq=7 rest=\"******\"");
    assert_eq!(shown(b"\0\0\0".to_vec(), false), "generic_nack seq=0");
}

#[test]
fn an_answer_has_its_status_and_its_id() {
    let accepted = shown(pdu(0x8000_0004, 0, b"abc\0"), false);
    assert_eq!(accepted, "submit_sm_resp seq=7 status=0x00000000 OK message_id=\"abc\"");
    let refused = shown(pdu(0x8000_0004, 0x0B, b""), false);
    assert_eq!(refused, "submit_sm_resp seq=7 status=0x0000000b ESME_RINVDSTADR");
}
