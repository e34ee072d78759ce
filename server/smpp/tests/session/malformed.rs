//! Bytes that aren't valid SMPP.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use smpp::{Event, FaultKind, status_code};
use testing::smsc::{
    DATA_SM, DELIVER_SM, ENQUIRE_LINK, ENQUIRE_LINK_RESP, GENERIC_NACK, OUTBIND, Peer, SUBMIT_SM,
    SUBMIT_SM_RESP, Smsc, deliver, pdu,
};

use crate::client::{Client, accepted, settings, submit};

/// Asserts that the session still works on the same bind.
async fn lives(client: &mut Client, peer: &mut Peer) {
    client.connection.submit(vec![submit(99)]);
    let sent = peer.expect(SUBMIT_SM).await;
    peer.accept(&sent, "alive").await;
    loop {
        if let Some(Event::Answer { tag, outcome }) = client.event().await {
            assert_eq!((tag, outcome), (99, accepted("alive")));
            break;
        }
    }
    assert_eq!(client.connection.status().binds, 1);
}

#[tokio::test]
async fn a_pdu_with_a_length_out_of_bounds_is_nacked_and_the_link_is_made_anew() {
    let smsc = Smsc::start().await;
    let client = Client::open(settings(&smsc));
    for length in [u32::MAX, 64 * 1024 + 1, 15, 4, 0] {
        let mut peer = smsc.bound().await;
        client.until_free().await;
        // Only the length arrives. The session neither waits nor allocates for the rest.
        peer.write(&length.to_be_bytes()).await;
        let nack = peer.expect(GENERIC_NACK).await;
        assert_eq!(nack.status, status_code::INVALID_COMMAND_LENGTH);
        peer.closed().await;
        let said = client.until_fault(FaultKind::BadPdu).await;
        assert!(said.contains(&format!("{length} octets")), "{said}");
    }
    smsc.bound().await;
}

#[tokio::test]
async fn the_longest_allowed_pdu_is_read() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    peer.write(&pdu(0x99, 0, 7, &vec![1; 64 * 1024 - 16])).await;
    let nack = peer.expect(GENERIC_NACK).await;
    assert_eq!((nack.sequence, nack.status), (7, status_code::INVALID_COMMAND_ID));
    lives(&mut client, &mut peer).await;
}

#[tokio::test]
async fn a_delivery_cut_anywhere_before_its_text_is_nacked_with_its_sequence_number() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let whole = deliver(0, 0, b"hello", &[]);
    for cut in 0..whole.len() {
        let sequence = u32::try_from(cut).unwrap() + 1;
        peer.write(&pdu(DELIVER_SM, 0, sequence, &whole[..cut])).await;
        let nack = peer.expect(GENERIC_NACK).await;
        assert_eq!((nack.sequence, nack.status), (sequence, status_code::SYSTEM_ERROR));
    }
    lives(&mut client, &mut peer).await;
}

#[tokio::test]
async fn a_pdu_that_needs_no_response_gets_none() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    for command in [GENERIC_NACK, 0x8000_0099, SUBMIT_SM_RESP, OUTBIND, 0x0102] {
        peer.write(&pdu(command, 3, 1234, b"???")).await;
    }
    peer.write(&pdu(ENQUIRE_LINK, 0, 8, &[])).await;
    assert_eq!(peer.expect(ENQUIRE_LINK_RESP).await.sequence, 8);
    lives(&mut client, &mut peer).await;
}

#[tokio::test]
async fn no_body_of_a_pdu_ends_the_session() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let mut random = StdRng::seed_from_u64(34);
    let commands = [DELIVER_SM, DATA_SM, SUBMIT_SM_RESP, GENERIC_NACK, 0x8000_0009];
    for _ in 0..2000 {
        let command = commands[random.random_range(0..commands.len())];
        let mut body = vec![0; random.random_range(0..80)];
        random.fill(&mut body[..]);
        // Without zeros, the first string would hardly ever end.
        for byte in &mut body {
            *byte &= if random.random_bool(0.4) { 0 } else { 0xFF };
        }
        peer.write(&pdu(command, random.random_range(0..9), 1_000_000, &body)).await;
        peer.write(&pdu(ENQUIRE_LINK, 0, 8, &[])).await;
        loop {
            match peer.read().await.unwrap().command {
                ENQUIRE_LINK_RESP => break,
                GENERIC_NACK => {}
                other => panic!("{other:X}"),
            }
        }
        while client.connection.status().unacknowledged > 0 {
            if let Some(Event::Deliver(delivery)) = client.event().await {
                smpp::receipt::parse(&delivery);
                client.connection.acknowledge(delivery.handle, 0);
                peer.read().await.unwrap();
            }
        }
    }
    lives(&mut client, &mut peer).await;
}
