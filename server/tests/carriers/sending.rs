//! A server whose carrier is a third-party SMSC.

use serde_json::Value;
use testing::harness::{Keys, Place, TestServer, until};

use crate::peer::{Ids, Kind, PASSWORD, Peer, SYSTEM_ID};

/// The carrier's settings, except its address and credentials.
#[derive(Clone, Copy)]
pub struct Carrier<'a> {
    pub ids: Ids,
    /// Further lines of the settings file.
    pub more: &'a str,
}

impl Default for Carrier<'_> {
    fn default() -> Self {
        Self { ids: Ids::Text, more: "" }
    }
}

/// A third-party SMSC, a server that submits to it, and an Active, funded application.
pub struct Sending {
    pub peer: Peer,
    pub server: TestServer,
    pub keys: Keys,
}

/// The balance at the start.
pub const FUNDS: &str = "100";

impl Sending {
    pub fn start(kind: Kind, carrier: Carrier) -> Self {
        let peer = Peer::start(kind, carrier.ids);
        let place = Place::new();
        let keys = place.funded("a@example.org", FUNDS);
        // Every command of the binary finds the file here.
        std::fs::write(place.path().join("heliograph.toml"), settings(&peer, carrier.more))
            .unwrap();
        let server = TestServer::start(place, &[], &[]);
        Self { peer, server, keys }
    }

    pub fn key(&self) -> &str {
        self.keys.live.expose()
    }

    /// Sends a message that must be accepted, and returns its transaction ID.
    pub fn send(&self, number: &str, text: &str) -> String {
        let pairs = [("number", number), ("message", text)];
        let answer = self.server.send(self.key(), &pairs);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["transid"].as_str().unwrap().to_owned()
    }

    pub fn final_report(&self, transid: &str) -> Value {
        self.server.final_report(self.key(), transid)
    }

    /// Waits for this many answered receipts, and checks that none was refused.
    pub fn answered_receipts(&self, count: usize) {
        let answers = until("answered receipts", || {
            let receipts = self.peer.events_of("receipt");
            (receipts.len() >= count).then_some(receipts)
        });
        assert_eq!(answers.len(), count, "{answers:?}");
        for answer in answers {
            assert_eq!(answer["answer"], 0, "{answer}");
        }
    }

    /// Stops the server and checks that every invariant holds.
    pub fn stop(self) -> Peer {
        let (code, place) = self.server.stop();
        assert_eq!(code, Some(0));
        place.check();
        self.peer
    }
}

fn settings(peer: &Peer, more: &str) -> String {
    format!(
        "[[carrier]]\nname = \"acme\"\nkind = \"smpp\"\naddress = \"127.0.0.1:{}\"\n\
         system_id = \"{SYSTEM_ID}\"\npassword = \"{PASSWORD}\"\n{more}\n\n[[route]]\n\
         carrier = \"acme\"\n",
        peer.port
    )
}
