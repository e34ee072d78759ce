//! Receipts and messages from the peer.

use std::time::Duration;

use smpp::receipt::{State, parse};
use smpp::{Event, UNACKNOWLEDGED_LIMIT, status_code};
use testing::smsc::{
    DATA_SM, DATA_SM_RESP, DELIVER_SM, DELIVER_SM_RESP, ENQUIRE_LINK, ENQUIRE_LINK_RESP, SUBMIT_SM,
    Smsc, c_string, deliver, pdu, receipt, tlv,
};

use crate::client::{Client, accepted, settings, submit};

#[tokio::test]
async fn a_receipt_may_come_before_the_answer_and_twice_and_is_acknowledged_only_when_told() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(vec![submit(1)]);
    let sent = peer.expect(SUBMIT_SM).await;
    for sequence in [50, 50] {
        peer.write(&pdu(DELIVER_SM, 0, sequence, &receipt("id-1", "DELIVRD"))).await;
    }
    peer.accept(&sent, "id-1").await;
    let (first, second) = (client.delivery().await, client.delivery().await);
    assert_eq!(client.answer().await, (1, accepted("id-1")));
    let read = parse(&first).unwrap();
    assert_eq!(read.message_id.as_deref(), Some("id-1"));
    assert_eq!(read.state, State::Delivered);
    assert_eq!(parse(&second).unwrap(), read);
    // The next PDU is the response to this enquire_link, so neither receipt was acknowledged.
    peer.write(&pdu(ENQUIRE_LINK, 0, 60, &[])).await;
    peer.expect(ENQUIRE_LINK_RESP).await;
    client.connection.acknowledge(second.handle, status_code::TEMPORARY_ERROR);
    let answer = peer.expect(DELIVER_SM_RESP).await;
    assert_eq!((answer.sequence, answer.status), (50, status_code::TEMPORARY_ERROR));
    assert_eq!(answer.body, [0]);
    // A second acknowledgement of the same delivery is ignored. The other delivery can still be
    // acknowledged.
    client.connection.acknowledge(second.handle, 0);
    client.connection.acknowledge(first.handle, 0);
    let answer = peer.expect(DELIVER_SM_RESP).await;
    assert_eq!((answer.sequence, answer.status), (50, 0));
    peer.write(&pdu(ENQUIRE_LINK, 0, 61, &[])).await;
    assert_eq!(peer.expect(ENQUIRE_LINK_RESP).await.sequence, 61);
    assert_eq!(client.connection.status().unacknowledged, 0);
}

#[tokio::test]
async fn all_fields_of_a_delivery_are_read() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let tlvs = [
        tlv(0x001E, b"id-7\0"),
        tlv(0x1500, b"theirs"),
        tlv(0x0427, &[2]),
        tlv(0x0423, &[3, 0, 5]),
        tlv(0x0204, &[1, 2]),
        tlv(0x020C, &[3, 4]),
        tlv(0x020E, &[5]),
        tlv(0x020F, &[6]),
    ];
    let body = deliver(0x04, 8, b"\0h\0i", &tlvs.concat());
    peer.write(&pdu(DELIVER_SM, 0, 1, &body)).await;
    let read = client.delivery().await;
    assert_eq!((read.source.as_str(), read.destination.as_str()), ("4912345", "6789"));
    assert_eq!((read.esm_class, read.data_coding), (0x04, 8));
    assert_eq!(read.text, b"\0h\0i");
    assert_eq!(read.receipted_message_id.as_deref(), Some("id-7"));
    assert_eq!(read.message_state, Some(2));
    assert_eq!(read.network_error_code, Some([3, 0, 5]));
    assert_eq!(read.user_message_reference, Some(0x0102));
    assert_eq!(read.sar_msg_ref_num, Some(0x0304));
    assert_eq!((read.sar_total_segments, read.sar_segment_seqnum), (Some(5), Some(6)));
    let payload = deliver(0, 0, b"", &tlv(0x0424, b"a long one"));
    peer.write(&pdu(DELIVER_SM, 0, 2, &payload)).await;
    assert_eq!(client.delivery().await.text, b"a long one");
}

#[tokio::test]
async fn a_malformed_tlv_costs_no_other_field_of_the_delivery() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let wrong = [
        tlv(0x0423, &[3]),
        tlv(0x0204, &[]),
        tlv(0x0427, &[]),
        tlv(0x020C, &[1]),
        tlv(0x020E, &[]),
        tlv(0x001E, b"no-nul"),
        // Longer than what is left.
        vec![0x04, 0x24, 0xFF, 0xFF, b'x'],
    ];
    peer.write(&pdu(DELIVER_SM, 0, 1, &deliver(4, 0, b"text", &wrong.concat()))).await;
    let read = client.delivery().await;
    assert_eq!(read.text, b"text");
    assert_eq!(read.receipted_message_id.as_deref(), Some("no-nul"));
    assert_eq!((read.message_state, read.network_error_code), (None, None));
    for cut in [1, 3] {
        let cut = vec![0x04; cut];
        peer.write(&pdu(DELIVER_SM, 0, 2, &deliver(0, 0, b"cut", &cut))).await;
        assert_eq!(client.delivery().await.text, b"cut");
    }
}

#[tokio::test]
async fn a_data_sm_is_told_as_a_delivery_and_answered_by_a_data_sm_resp() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let mut body = b"\0\x01\x01123\0\x01\x01456\0\x04\0\0".to_vec();
    body.extend(tlv(0x001E, &c_string("id-8")));
    body.extend(tlv(0x0427, &[5]));
    peer.write(&pdu(DATA_SM, 0, 5, &body)).await;
    let read = client.delivery().await;
    assert_eq!((read.source.as_str(), read.esm_class), ("123", 4));
    assert_eq!(read.receipted_message_id.as_deref(), Some("id-8"));
    client.connection.acknowledge(read.handle, 0);
    assert_eq!(peer.expect(DATA_SM_RESP).await.sequence, 5);
}

#[tokio::test]
async fn an_acknowledgement_for_an_earlier_bind_is_ignored() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    peer.write(&pdu(DELIVER_SM, 0, 1, &receipt("a", "DELIVRD"))).await;
    let old = client.delivery().await;
    drop(peer);
    let mut peer = smsc.bound().await;
    client.until_free().await;
    peer.write(&pdu(DELIVER_SM, 0, 1, &receipt("b", "DELIVRD"))).await;
    let new = client.delivery().await;
    client.connection.acknowledge(old.handle, 1);
    client.connection.acknowledge(new.handle, 2);
    assert_eq!(peer.expect(DELIVER_SM_RESP).await.status, 2);
}

#[tokio::test]
async fn a_flood_of_deliveries_is_held_back_until_some_are_acknowledged() {
    const COUNT: usize = 20 * UNACKNOWLEDGED_LIMIT;
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(vec![submit(1)]);
    let sent = peer.expect(SUBMIT_SM).await;
    let flood = tokio::spawn(async move {
        let one = pdu(DELIVER_SM, 0, 3, &receipt("flood", "DELIVRD"));
        for _ in 0..COUNT {
            peer.write(&one).await;
        }
        peer.accept(&sent, "after").await;
        for _ in 0..COUNT {
            peer.expect(DELIVER_SM_RESP).await;
        }
    });
    let mut held = Vec::new();
    for _ in 0..UNACKNOWLEDGED_LIMIT {
        held.push(client.delivery().await.handle);
    }
    let mut delivered = UNACKNOWLEDGED_LIMIT;
    while delivered < COUNT {
        let status = client.connection.status();
        assert!(status.unacknowledged <= UNACKNOWLEDGED_LIMIT);
        assert!(status.delivered <= delivered as u64, "more than was acknowledged");
        client.connection.acknowledge(held.pop().unwrap(), 0);
        held.push(client.delivery().await.handle);
        delivered += 1;
    }
    for handle in held {
        client.connection.acknowledge(handle, 0);
    }
    assert_eq!(client.answer().await, (1, accepted("after")));
    flood.await.unwrap();
}

/// A peer isn't silent while its answer waits behind deliveries that we don't read.
#[tokio::test]
async fn no_submit_runs_out_of_time_while_deliveries_are_held_back() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.answer = Duration::from_secs(3);
    settings.timers.enquire_link = Duration::from_millis(50);
    let (mut client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(vec![submit(1)]);
    let sent = loop {
        let pdu = peer.read().await.unwrap();
        if pdu.command == SUBMIT_SM {
            break pdu;
        }
    };
    let one = pdu(DELIVER_SM, 0, 3, &receipt("flood", "DELIVRD"));
    peer.write(&one.repeat(UNACKNOWLEDGED_LIMIT)).await;
    peer.accept(&sent, "behind").await;
    let mut held = Vec::new();
    while held.len() < UNACKNOWLEDGED_LIMIT {
        held.push(client.delivery().await.handle);
    }
    // Longer than the answer timeout.
    tokio::time::sleep(Duration::from_secs(4)).await;
    client.connection.acknowledge(held[0], 0);
    match client.event().await {
        Some(Event::Answer { outcome, .. }) => assert_eq!(outcome, accepted("behind")),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.connection.status().binds, 1);
}
