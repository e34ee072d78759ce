//! A connection with a transmitter link and a receiver link.

use smpp::{BindMode, Settings, State};
use testing::smsc::{
    BIND_RECEIVER, BIND_TRANSMITTER, DELIVER_SM, DELIVER_SM_RESP, Peer, SUBMIT_SM, Smsc, UNBIND,
    pdu, receipt,
};

use crate::client::{Client, accepted, settings, submit};

fn two(smsc: &Smsc) -> Settings {
    Settings { bind: BindMode::TransmitterAndReceiver, ..settings(smsc) }
}

/// Accepts the next two connections and their binds. Returns the transmitter and the receiver.
async fn both(smsc: &Smsc) -> (Peer, Peer) {
    let mut peers = Vec::new();
    for _ in 0..2 {
        let mut peer = smsc.accept().await;
        let bind = peer.expect_bind().await;
        peers.push((bind, peer));
    }
    peers.sort_by_key(|(bind, _)| bind.command == BIND_RECEIVER);
    for (bind, peer) in &mut peers {
        peer.answer(bind, 0, b"smsc\0").await;
    }
    let commands = [peers[0].0.command, peers[1].0.command];
    assert_eq!(commands, [BIND_TRANSMITTER, BIND_RECEIVER]);
    let (_, receiver) = peers.pop().unwrap();
    let (_, transmitter) = peers.pop().unwrap();
    (transmitter, receiver)
}

#[tokio::test]
async fn a_connection_of_two_links_is_bound_when_both_are() {
    let smsc = Smsc::start().await;
    let mut client = Client::open(two(&smsc));
    let (mut transmitter, mut receiver) = both(&smsc).await;
    client.until_free().await;
    assert_eq!(client.connection.status().binds, 2);
    client.connection.submit(vec![submit(1)]);
    let sent = transmitter.expect(SUBMIT_SM).await;
    receiver.write(&pdu(DELIVER_SM, 0, 4, &receipt("x", "DELIVRD"))).await;
    let delivery = client.delivery().await;
    client.connection.acknowledge(delivery.handle, 0);
    assert_eq!(receiver.expect(DELIVER_SM_RESP).await.sequence, 4);
    transmitter.accept(&sent, "x").await;
    assert_eq!(client.answer().await, (1, accepted("x")));
}

#[tokio::test]
async fn while_one_of_two_links_is_down_no_submit_is_taken_and_answers_still_come() {
    let smsc = Smsc::start().await;
    let mut client = Client::open(two(&smsc));
    let (mut transmitter, receiver) = both(&smsc).await;
    client.until_free().await;
    client.connection.submit(vec![submit(1)]);
    let sent = transmitter.expect(SUBMIT_SM).await;
    drop(receiver);
    let mut receiver = smsc.accept().await;
    let bind = receiver.expect_bind().await;
    assert_eq!(bind.command, BIND_RECEIVER);
    assert_ne!(client.connection.status().state, State::Bound);
    assert_eq!(client.connection.free(), 0);
    // The submit on the other link still gets its answer.
    transmitter.accept(&sent, "kept").await;
    assert_eq!(client.answer().await, (1, accepted("kept")));
    receiver.answer(&bind, 0, b"smsc\0").await;
    client.until_free().await;
}

#[tokio::test]
async fn close_unbinds_both_links() {
    let smsc = Smsc::start().await;
    let client = Client::open(two(&smsc));
    let (mut transmitter, mut receiver) = both(&smsc).await;
    client.until_free().await;
    let close = tokio::spawn(client.close());
    for peer in [&mut transmitter, &mut receiver] {
        let unbind = peer.expect(UNBIND).await;
        peer.answer(&unbind, 0, b"").await;
    }
    assert!(close.await.unwrap().is_empty());
}
