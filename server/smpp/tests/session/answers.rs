//! The outcome of each submit.

use std::time::Duration;

use smpp::{Outcome, UnknownCause, status_code};
use testing::smsc::{
    ENQUIRE_LINK, ENQUIRE_LINK_RESP, GENERIC_NACK, SUBMIT_SM, SUBMIT_SM_RESP, Smsc, pdu,
    short_message,
};
use tokio::time::Instant;

use crate::client::{Client, accepted, settings, submit, submits};

#[tokio::test]
async fn answers_in_any_order_are_told_by_the_tag_of_their_submit() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(submits(0..10));
    let mut submits = peer.submits(10).await;
    submits.reverse();
    for submit in &submits {
        let text = String::from_utf8(short_message(&submit.body)).unwrap();
        peer.accept(submit, &format!("id-{text}")).await;
    }
    for (tag, outcome) in client.answers(10).await {
        assert_eq!(outcome, accepted(&format!("id-{tag}")));
    }
    let status = client.connection.status();
    assert_eq!((status.in_flight, status.answered, status.binds), (0, 10, 1));
}

#[tokio::test]
async fn no_more_submits_are_sent_than_the_window_allows() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    assert_eq!(client.connection.free(), 10);
    client.connection.submit(submits(0..15));
    assert_eq!(client.connection.free(), 0);
    for (tag, outcome) in client.answers(5).await {
        assert!(tag >= 10);
        assert_eq!(outcome, Outcome::NotSent);
    }
    let submits = peer.submits(10).await;
    assert_eq!(client.connection.free(), 0);
    // An eleventh submit would have been written before the response to this enquire_link.
    peer.write(&pdu(0x15, 0, 77, &[])).await;
    assert_eq!(peer.read().await.unwrap().sequence, 77);
    peer.accept(&submits[3], "x").await;
    assert_eq!(client.answer().await, (3, accepted("x")));
    assert_eq!(client.connection.free(), 1);
}

#[tokio::test]
async fn a_refusal_a_nack_and_an_answer_without_body_are_distinguished() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(submits(0..5));
    let submits = peer.submits(5).await;
    peer.answer(&submits[0], 0x0B, b"r-1\0").await;
    peer.write(&pdu(GENERIC_NACK, 0x03, submits[1].sequence, &[])).await;
    peer.answer(&submits[2], 0, b"").await;
    peer.answer(&submits[3], 0, b"no-nul").await;
    peer.answer(&submits[4], 0, b"\xFF\xFE\0").await;
    let none = Outcome::Accepted { message_id: None };
    let expected = [
        Outcome::Refused { status: 0x0B, message_id: Some("r-1".to_owned()) },
        Outcome::Refused { status: 0x03, message_id: None },
        none.clone(),
        accepted("no-nul"),
        none,
    ];
    for (tag, outcome) in client.answers(5).await {
        assert_eq!(outcome, expected[usize::try_from(tag).unwrap()], "{tag}");
    }
    // The session continues.
    client.connection.submit(vec![submit(9)]);
    let last = peer.expect(SUBMIT_SM).await;
    peer.accept(&last, "on").await;
    assert_eq!(client.answer().await, (9, accepted("on")));
}

#[tokio::test]
async fn a_nack_that_may_be_for_our_response_refuses_no_submit() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(vec![submit(1)]);
    let sent = peer.expect(SUBMIT_SM).await;
    peer.write(&pdu(ENQUIRE_LINK, 0, sent.sequence, &[])).await;
    peer.expect(ENQUIRE_LINK_RESP).await;
    peer.write(&pdu(GENERIC_NACK, 0x03, sent.sequence, &[])).await;
    peer.accept(&sent, "x").await;
    assert_eq!(client.answer().await, (1, accepted("x")));
}

#[tokio::test]
async fn an_answer_is_told_once_and_an_answer_to_no_submit_is_not_told() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(vec![submit(1)]);
    let first = peer.expect(SUBMIT_SM).await;
    peer.write(&pdu(SUBMIT_SM_RESP, 0, 4_000_000, b"z\0")).await;
    peer.accept(&first, "a").await;
    peer.accept(&first, "b").await;
    assert_eq!(client.answer().await, (1, accepted("a")));
    client.connection.submit(vec![submit(2)]);
    let second = peer.expect(SUBMIT_SM).await;
    peer.accept(&second, "c").await;
    assert_eq!(client.answer().await, (2, accepted("c")));
}

#[tokio::test]
async fn a_submit_without_answer_in_time_is_unknown_and_its_late_answer_is_told_too() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.answer = Duration::from_secs(2);
    settings.window = 2;
    let (mut client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(vec![submit(1), submit(2)]);
    let late = peer.expect(SUBMIT_SM).await;
    // Another submit is answered, so the peer works.
    let other = peer.expect(SUBMIT_SM).await;
    peer.accept(&other, "other").await;
    assert_eq!(client.answer().await, (2, accepted("other")));
    let cause = UnknownCause::NoAnswer;
    assert_eq!(client.answer().await, (1, Outcome::Unknown { cause }));
    // Its slot in the window is free again.
    assert_eq!(client.connection.free(), 2);
    peer.accept(&late, "late").await;
    assert_eq!(client.answer().await, (1, accepted("late")));
    peer.accept(&late, "later").await;
    assert_eq!(client.connection.status().in_flight, 0);
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn a_connection_that_is_not_bound_sends_no_submit() {
    let smsc = Smsc::start().await;
    let mut client = Client::open(settings(&smsc));
    assert_eq!(client.connection.free(), 0);
    client.connection.submit(vec![submit(1)]);
    assert_eq!(client.answer().await, (1, Outcome::NotSent));
    // The peer accepts the connection and never answers the bind.
    let mut peer = smsc.accept().await;
    peer.expect_bind().await;
    client.connection.submit(vec![submit(2)]);
    assert_eq!(client.answer().await, (2, Outcome::NotSent));
}

#[tokio::test]
async fn a_submit_past_its_time_is_not_written() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let mut stale = submit(1);
    stale.not_after = Instant::now().checked_sub(Duration::from_millis(1)).unwrap();
    client.connection.submit(vec![stale, submit(2)]);
    assert_eq!(client.answer().await, (1, Outcome::NotSent));
    assert_eq!(short_message(&peer.expect(SUBMIT_SM).await.body), b"2");
}

#[tokio::test]
async fn a_submit_that_smpp_cannot_carry_is_refused_and_not_written() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let mut bad = submits(0..5);
    bad[0].destination.digits = "1".repeat(21);
    bad[1].source.digits = "Grüße".to_owned();
    bad[2].short_message = vec![b'x'; 256];
    bad[3].validity_period = Some("soon".to_owned());
    bad[4].message_payload = Some(vec![b'x'; 65536]);
    bad.push(submit(5));
    client.connection.submit(bad);
    let expected = [
        status_code::INVALID_DESTINATION,
        status_code::INVALID_SOURCE,
        status_code::INVALID_MESSAGE_LENGTH,
        status_code::INVALID_VALIDITY,
        status_code::INVALID_MESSAGE_LENGTH,
    ];
    for (status, (tag, outcome)) in expected.into_iter().zip(client.answers(5).await) {
        assert_eq!(outcome, Outcome::Unsendable { status }, "{tag}");
    }
    assert_eq!(short_message(&peer.expect(SUBMIT_SM).await.body), b"5");
}

#[tokio::test]
async fn every_field_of_a_submit_is_written_as_the_specification_says() {
    let smsc = Smsc::start().await;
    let (client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let mut full = submit(1);
    full.service_type = "CMT".to_owned();
    full.esm_class = 0x40;
    full.validity_period = Some("261121120000000+".to_owned());
    full.registered_delivery = 0x11;
    full.data_coding = 0xF5;
    full.short_message = vec![5, 0, 3, 1, 2, 1, 0xFF];
    full.sar_msg_ref_num = Some(0x0102);
    full.sar_total_segments = Some(3);
    full.sar_segment_seqnum = Some(2);
    full.user_message_reference = Some(0x0A0B);
    full.message_payload = Some(b"long".to_vec());
    client.connection.submit(vec![full]);
    let mut expected = b"CMT\0\x05\x00Heliograph\0\x01\x01491701234567\0\x40\0\0\0".to_vec();
    expected.extend(b"261121120000000+\0\x11\0\xF5\0\x07\x05\0\x03\x01\x02\x01\xFF");
    expected.extend(b"\x02\x0C\0\x02\x01\x02\x02\x0E\0\x01\x03\x02\x0F\0\x01\x02");
    expected.extend(b"\x02\x04\0\x02\x0A\x0B\x04\x24\0\x04long");
    assert_eq!(peer.expect(SUBMIT_SM).await.body, expected);
}

#[tokio::test]
async fn every_value_of_the_one_octet_fields_is_written_as_it_is() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.window = 256;
    let (client, mut peer) = Client::bound(&smsc, settings).await;
    let submits = (0..=255).map(|value: u8| {
        let mut submit = submit(1);
        submit.source.digits.clear();
        submit.destination.digits.clear();
        submit.short_message.clear();
        (submit.source.ton, submit.source.npi) = (value, value);
        (submit.destination.ton, submit.destination.npi) = (value, value);
        (submit.esm_class, submit.registered_delivery, submit.data_coding) = (value, value, value);
        submit
    });
    client.connection.submit(submits.collect());
    for (v, pdu) in (0..=255).zip(peer.submits(256).await) {
        let expected = [0, v, v, 0, v, v, 0, v, 0, 0, 0, 0, v, 0, v, 0, 0];
        assert_eq!(pdu.body, expected, "{v}");
    }
}
