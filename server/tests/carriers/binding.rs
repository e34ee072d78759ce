//! All kinds of binds, and unbinds.

use testing::harness::until;

use crate::peer::Kind;
use crate::sending::{Carrier, Sending};
use crate::with_both_peers;

with_both_peers!(receipts_come_over_the_receiver_of_two_binds, a_stop_of_the_server_unbinds);

fn receipts_come_over_the_receiver_of_two_binds(kind: Kind) {
    let carrier = Carrier { more: "bind = \"transmitter+receiver\"", ..Carrier::default() };
    let sending = Sending::start(kind, carrier);
    for (number, status) in [("57000001", "delivered"), ("57000002", "failed")] {
        let transid = sending.send(number, "Hello");
        assert_eq!(sending.final_report(&transid)["status"], status);
    }
    let mut modes: Vec<String> =
        sending.peer.events_of("bound").iter().map(|bound| bound["mode"].to_string()).collect();
    modes.sort();
    assert_eq!(modes, ["\"bind_receiver\"", "\"bind_transmitter\""]);
    sending.stop();
}

fn a_stop_of_the_server_unbinds(kind: Kind) {
    let sending = Sending::start(kind, Carrier::default());
    let transid = sending.send("57000001", "Hello");
    assert_eq!(sending.final_report(&transid)["status"], "delivered");
    let peer = sending.stop();
    until("an unbind", || (!peer.events_of("unbound").is_empty()).then_some(()));
    assert_eq!(peer.events_of("bound").len(), 1, "one connection, bound once");
    assert_eq!(peer.events_of("error").len(), 0);
}
