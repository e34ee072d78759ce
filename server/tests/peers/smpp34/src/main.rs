//! An SMSC built on the `smpp34` crate's server, for the tests of carriers.
//!
//! `smpp34-peer [text|hex-to-decimal]`: the argument is the format of message IDs in answers and
//! receipts. The SMSC listens on any free port. It prints the port and all events as JSON lines.
//! The last digit of the destination decides: 2 is undeliverable, 3 expires, 4 is refused at once,
//! all others are delivered. The process ends when its standard input is closed.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for tests, which read its output"
)]

mod gsm;
mod received;

use std::collections::HashMap;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use serde_json::json;
use smpp34::server::ESME;
use smpp34::{
    SmppConnectionInformation, SmppError, SmppServer, SmppServerListener, TlvTag, bind_receiver,
    bind_receiver_resp, bind_transceiver, bind_transceiver_resp, bind_transmitter,
    bind_transmitter_resp, submit_sm, submit_sm_resp,
};
use tokio::sync::Mutex;

const SYSTEM_ID: &str = "heliograph";
const PASSWORD: &str = "secret";
const NAME: &str = "smpp34";
/// SMPP 3.4.
const VERSION: Option<u8> = Some(0x34);

struct Centre {
    hex_to_decimal: bool,
    count: AtomicU64,
    receivers: Mutex<Receivers>,
}

#[derive(Default)]
struct Receivers {
    /// Sessions that can receive receipts, by ID.
    sessions: HashMap<String, Arc<ESME>>,
    /// Receipts that wait for a receiving session.
    due: Vec<Due>,
}

/// A receipt to send.
struct Due {
    id: String,
    session_id: String,
    pdu: submit_sm,
}

impl Centre {
    /// Returns the next message ID as in the answer and as in the receipt.
    fn next_ids(&self) -> (String, String) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if self.hex_to_decimal {
            let id = 0x1a2b_3c00 + count;
            (format!("{id:X}"), id.to_string())
        } else {
            let id = format!("s-{count}");
            (id.clone(), id)
        }
    }

    /// Sends receipts on the submitting session if it can receive, otherwise on any that can.
    async fn send_receipts(&self) {
        let mut receivers = self.receivers.lock().await;
        let Receivers { sessions, due } = &mut *receivers;
        for receipt in std::mem::take(due) {
            let own = sessions.get(&receipt.session_id);
            match own.or_else(|| sessions.values().next()) {
                Some(session) => drop(tokio::spawn(send_receipt(Arc::clone(session), receipt))),
                None => due.push(receipt),
            }
        }
    }

    fn refuses_bind(system_id: &str, password: &str) -> bool {
        let refused = (system_id, password) != (SYSTEM_ID, PASSWORD);
        if refused {
            println!("{}", json!({ "event": "refused_bind", "system_id": system_id }));
        }
        refused
    }
}

async fn send_receipt(esme: Arc<ESME>, due: Due) {
    let Due { id, pdu, .. } = due;
    let (state, number) = match pdu.destination_addr.as_bytes().last() {
        Some(b'2') => ("UNDELIV", 5),
        Some(b'3') => ("EXPIRED", 3),
        _ => ("DELIVRD", 2),
    };
    let (delivered, error) = if number == 2 { ("001", "000") } else { ("000", "011") };
    let now = time::OffsetDateTime::now_utc();
    let now = format!(
        "{:02}{:02}{:02}{:02}{:02}",
        now.year() % 100,
        u8::from(now.month()),
        now.day(),
        now.hour(),
        now.minute()
    );
    let text = format!(
        "id:{id} sub:001 dlvrd:{delivered} submit date:{now} done date:{now} stat:{state} \
         err:{error} text:"
    );
    let answer = esme
        .deliver_sm()
        .source_addr_ton(pdu.dest_addr_ton)
        .source_addr_npi(pdu.dest_addr_npi)
        .source_addr(pdu.destination_addr)
        .dest_addr_ton(pdu.source_addr_ton)
        .dest_addr_npi(pdu.source_addr_npi)
        .destination_addr(pdu.source_addr)
        .esm_class(0x04)
        .short_message(text)
        .tlv(TlvTag::ReceiptedMessageId, format!("{id}\0"))
        .tlv(TlvTag::MessageStateTlv, [number])
        .send()
        .await;
    let answer = match answer {
        Ok(_) => 0,
        Err(error) => error as u32,
    };
    println!("{}", json!({ "event": "receipt", "id": id, "state": state, "answer": answer }));
}

#[async_trait]
impl SmppServerListener for Centre {
    async fn on_bind_transceiver(
        &self,
        pdu: bind_transceiver,
        _: &SmppConnectionInformation,
        _: &String,
    ) -> bind_transceiver_resp {
        if Self::refuses_bind(&pdu.system_id, &pdu.password) {
            return pdu.reject(SmppError::ESME_RINVPASWD);
        }
        println!("{}", json!({ "event": "bound", "mode": "bind_transceiver" }));
        pdu.accept(NAME.to_owned(), VERSION)
    }

    async fn on_bind_receiver(
        &self,
        pdu: bind_receiver,
        _: &SmppConnectionInformation,
        _: &String,
    ) -> bind_receiver_resp {
        if Self::refuses_bind(&pdu.system_id, &pdu.password) {
            return pdu.reject(SmppError::ESME_RINVPASWD);
        }
        println!("{}", json!({ "event": "bound", "mode": "bind_receiver" }));
        pdu.accept(NAME.to_owned(), VERSION)
    }

    async fn on_bind_transmitter(
        &self,
        pdu: bind_transmitter,
        _: &SmppConnectionInformation,
        _: &String,
    ) -> bind_transmitter_resp {
        if Self::refuses_bind(&pdu.system_id, &pdu.password) {
            return pdu.reject(SmppError::ESME_RINVPASWD);
        }
        println!("{}", json!({ "event": "bound", "mode": "bind_transmitter" }));
        pdu.accept(NAME.to_owned(), VERSION)
    }

    async fn on_submit_sm(
        &self,
        pdu: submit_sm,
        _: &SmppConnectionInformation,
        session_id: &String,
    ) -> submit_sm_resp {
        let refused = pdu.destination_addr.ends_with('4');
        println!("{}", received::line(&pdu, refused));
        if refused {
            return pdu.reject(SmppError::ESME_RINVDSTADR);
        }
        let (answered, receipted) = self.next_ids();
        let due = Due { id: receipted, session_id: session_id.clone(), pdu: pdu.clone() };
        self.receivers.lock().await.due.push(due);
        // The receipt may arrive before the answer, as with a real SMSC.
        self.send_receipts().await;
        pdu.accept(answered)
    }

    async fn on_esme_bound(&self, esme: ESME, session_id: &String) {
        if esme.can_receive {
            let mut receivers = self.receivers.lock().await;
            receivers.sessions.insert(session_id.clone(), Arc::new(esme));
            drop(receivers);
            self.send_receipts().await;
        }
    }

    async fn on_esme_unbound(&self, session_id: &String) {
        println!("{}", json!({ "event": "unbound" }));
        self.receivers.lock().await.sessions.remove(session_id);
    }
}

#[tokio::main]
async fn main() {
    let centre = Arc::new(Centre {
        hex_to_decimal: std::env::args().nth(1).as_deref() == Some("hex-to-decimal"),
        count: AtomicU64::new(0),
        receivers: Mutex::default(),
    });
    // The library doesn't report its port, so this picks a free port first. Another process may
    // take that port before the library does; then this tries another one.
    let server = loop {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let handler = Arc::clone(&centre);
        let mut server = SmppServer::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port, handler);
        server.start().await;
        if server.is_alive() {
            println!("{}", json!({ "event": "listening", "port": port }));
            break server;
        }
    };
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    ended.await.unwrap().unwrap();
    drop(server);
}
