//! A scripted SMSC. It has a runtime of its own, because the tests block.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use testing::harness::until;
use testing::smsc::{
    BIND_RECEIVER, BIND_TRANSCEIVER, BIND_TRANSMITTER, DELIVER_SM, DELIVER_SM_RESP, Pdu, Peer,
    RESPONSE, SUBMIT_SM, SUBMIT_SM_RESP, Smsc, UNBIND, c_string, pdu, receipt, short_message,
    split,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// What the SMSC does with a submit, in this order. Without an `Accept` or `Refuse` there is no
/// answer.
pub enum Act {
    /// Accepts the submit with this ID.
    Accept(String),
    /// Refuses the submit with this `command_status`.
    Refuse(u32),
    /// Sends a `deliver_sm` with this body.
    Deliver(Vec<u8>),
    /// Closes the connection.
    Cut,
}

/// A received submit.
#[derive(Clone, Debug)]
pub struct Submit {
    pub number: String,
    /// The source address.
    pub sender: String,
    /// The text, including its user data header if it has one.
    pub text: Vec<u8>,
    pub validity_period: String,
    /// The number of submits before this one.
    pub before: usize,
    sequence: u32,
    pub body: Vec<u8>,
}

impl Submit {
    /// Returns the number of the part, 1 if the message has only one.
    pub fn part(&self) -> u8 {
        match self.text.first() {
            // Both kinds of concatenation headers, with lengths 5 and 6, end with the number of the
            // part. A text begins with a letter.
            Some(length @ (5 | 6)) => self.text[usize::from(*length)],
            _ => 1,
        }
    }

    /// Returns the TLV user_message_reference, for a receipt to echo.
    pub fn user_reference(&self) -> Vec<u8> {
        let tlv = |bytes: &&[u8]| bytes.starts_with(&[2, 4, 0, 2]);
        self.body.windows(6).rfind(tlv).unwrap().to_vec()
    }
}

type Script = Box<dyn FnMut(&Submit) -> Vec<Act> + Send>;

/// Stops listening and closes its connections on drop.
pub struct Scripted {
    pub address: String,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

struct Shared {
    script: Mutex<Script>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    submits: Vec<Submit>,
    binds: usize,
    /// The connections that ended.
    ended: usize,
    deliveries: u32,
    /// The `command_status` of the answers to deliveries, by sequence number.
    answers: HashMap<u32, u32>,
    /// The connections so far, as channels for PDUs to write.
    links: Vec<mpsc::UnboundedSender<Vec<u8>>>,
}

impl Scripted {
    pub fn start(script: impl FnMut(&Submit) -> Vec<Act> + Send + 'static) -> Self {
        Self::start_at("127.0.0.1:0", script)
    }

    pub fn start_at(
        address: &str,
        script: impl FnMut(&Submit) -> Vec<Act> + Send + 'static,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let smsc = runtime.block_on(Smsc::start_at(address));
        let address = smsc.address();
        let shared =
            Arc::new(Shared { script: Mutex::new(Box::new(script)), inner: Mutex::default() });
        let serving = Arc::clone(&shared);
        runtime.spawn(async move {
            loop {
                let peer = smsc.accept().await;
                let (link, deliveries) = mpsc::unbounded_channel();
                serving.inner().links.push(link);
                let shared = Arc::clone(&serving);
                tokio::spawn(async move {
                    serve(peer, Arc::clone(&shared), deliveries).await;
                    shared.inner().ended += 1;
                });
            }
        });
        Self { address, shared, _runtime: runtime }
    }

    /// Starts an SMSC that accepts every message and delivers it. The IDs count from 1.
    pub fn delivering() -> Self {
        Self::start(deliver)
    }

    /// Like [`Scripted::delivering`], at a given address, where another SMSC was before.
    pub fn delivering_at(address: &str) -> Self {
        Self::start_at(address, deliver)
    }

    pub fn submits(&self) -> Vec<Submit> {
        self.shared.inner().submits.clone()
    }

    /// Returns the number of submits to a number.
    pub fn count(&self, number: &str) -> usize {
        let inner = self.shared.inner();
        let to = inner.submits.iter().filter(|submit| submit.number == number);
        to.count()
    }

    pub fn until_submits(&self, count: usize) {
        until("submits", || (self.shared.inner().submits.len() >= count).then_some(()));
    }

    pub fn binds(&self) -> usize {
        self.shared.inner().binds
    }

    pub fn until_bound(&self) {
        self.until_binds(1);
    }

    /// Waits for this many binds.
    pub fn until_binds(&self, count: usize) {
        until("a bind", || (self.shared.inner().binds >= count).then_some(()));
    }

    /// Waits for this many acknowledged deliveries.
    pub fn until_acknowledged(&self, count: usize) {
        until("acknowledged deliveries", || {
            (self.shared.inner().answers.len() >= count).then_some(())
        });
    }

    /// Waits until all connections are closed.
    pub fn until_unbound(&self) {
        until("no connection", || {
            let inner = self.shared.inner();
            (inner.ended == inner.links.len()).then_some(())
        });
    }

    /// Replaces the script.
    pub fn follow(&self, script: impl FnMut(&Submit) -> Vec<Act> + Send + 'static) {
        *self.shared.script.lock().unwrap() = Box::new(script);
    }

    /// Accepts a submit that hasn't been answered yet. `before` is the number of submits before it.
    pub fn accept_late(&self, before: usize, id: &str) {
        self.answer_late(before, 0, &c_string(id));
    }

    /// Answers a submit that hasn't been answered yet with this `command_status` and body.
    pub fn answer_late(&self, before: usize, status: u32, body: &[u8]) {
        let inner = self.shared.inner();
        let sequence = inner.submits[before].sequence;
        let answer = pdu(SUBMIT_SM_RESP, status, sequence, body);
        inner.links.last().unwrap().send(answer).unwrap();
    }

    /// Delivers on the newest connection and waits for the acknowledgment, so the receipt is
    /// stored.
    pub fn deliver(&self, body: &[u8]) {
        self.deliver_all(&[body.to_vec()]);
    }

    pub fn deliver_all(&self, bodies: &[Vec<u8>]) {
        let sequences = {
            let mut inner = self.shared.inner();
            let first = inner.deliveries + 1;
            for body in bodies {
                let delivery = inner.delivery(body);
                inner.links.last().unwrap().send(delivery).unwrap();
            }
            first..=inner.deliveries
        };
        for sequence in sequences {
            let answer = until("an acknowledged delivery", || {
                self.shared.inner().answers.get(&sequence).copied()
            });
            assert_eq!(answer, 0);
        }
    }
}

/// The script of [`Scripted::delivering`].
pub fn deliver(submit: &Submit) -> Vec<Act> {
    let id = (submit.before + 1).to_string();
    let delivered = receipt(&id, "DELIVRD");
    vec![Act::Accept(id), Act::Deliver(delivered)]
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }
}

impl Inner {
    fn delivery(&mut self, body: &[u8]) -> Vec<u8> {
        self.deliveries += 1;
        pdu(DELIVER_SM, 0, self.deliveries, body)
    }
}

async fn serve(
    mut peer: Peer,
    shared: Arc<Shared>,
    mut deliveries: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    let mut incoming = Vec::new();
    loop {
        let bytes = tokio::select! {
            bytes = peer.read_some(64 * 1024) => bytes,
            Some(delivery) = deliveries.recv() => {
                peer.try_write(&delivery).await;
                continue;
            }
        };
        if bytes.is_empty() {
            return;
        }
        incoming.extend(bytes);
        while let Some((request, length)) = split(&incoming) {
            incoming.drain(..length);
            let Some(answer) = answer(&request, &shared) else {
                return;
            };
            peer.try_write(&answer).await;
            if request.command == UNBIND {
                return;
            }
        }
    }
}

/// Returns the bytes to write for a PDU. `None` if the connection must be closed.
fn answer(request: &Pdu, shared: &Shared) -> Option<Vec<u8>> {
    let respond =
        |status, body: &[u8]| pdu(request.command | RESPONSE, status, request.sequence, body);
    match request.command {
        BIND_RECEIVER | BIND_TRANSMITTER | BIND_TRANSCEIVER => {
            shared.inner().binds += 1;
            Some(respond(0, &c_string("smsc")))
        }
        SUBMIT_SM => {
            let submit = {
                let mut inner = shared.inner();
                let submit = read(request, inner.submits.len());
                inner.submits.push(submit.clone());
                submit
            };
            let acts = (shared.script.lock().unwrap())(&submit);
            let mut bytes = Vec::new();
            for act in acts {
                match act {
                    Act::Accept(id) => bytes.extend(respond(0, &c_string(&id))),
                    Act::Refuse(status) => bytes.extend(respond(status, &[])),
                    Act::Deliver(body) => bytes.extend(shared.inner().delivery(&body)),
                    Act::Cut => return None,
                }
            }
            Some(bytes)
        }
        DELIVER_SM_RESP => {
            let mut inner = shared.inner();
            inner.answers.insert(request.sequence, request.status);
            Some(Vec::new())
        }
        command if command & RESPONSE == 0 => Some(respond(0, &[])),
        _ => Some(Vec::new()),
    }
}

/// Reads the fields of a submit_sm that tests use.
fn read(request: &Pdu, before: usize) -> Submit {
    let mut rest = &request.body[..];
    let mut text = |skipped: usize| {
        rest = &rest[skipped..];
        let end = rest.iter().position(|byte| *byte == 0).unwrap();
        let text = String::from_utf8(rest[..end].to_vec()).unwrap();
        rest = &rest[end + 1..];
        text
    };
    // service_type; TON and NPI before each address.
    let _ = text(0);
    let sender = text(2);
    let number = text(2);
    // esm_class, protocol_id, priority_flag; schedule_delivery_time.
    let _ = text(3);
    let validity_period = text(0);
    Submit {
        number,
        sender,
        validity_period,
        text: short_message(&request.body),
        before,
        sequence: request.sequence,
        body: request.body.clone(),
    }
}

/// Returns a receipt from a number, for a message submitted at this time (YYMMDDhhmm).
pub fn receipt_from(number: &str, id: &str, submitted: &str, stat: &str) -> Vec<u8> {
    receipt_to("Heliograph", number, id, submitted, stat)
}

/// Returns a receipt for a message from this sender.
pub fn receipt_to(sender: &str, number: &str, id: &str, submitted: &str, stat: &str) -> Vec<u8> {
    let text = format!(
        "id:{id} sub:001 dlvrd:001 submit date:{submitted} done date:{submitted} stat:{stat} \
         err:000 text:"
    );
    let mut body = vec![0, 1, 1];
    body.extend(c_string(number));
    body.extend([5, 0]);
    body.extend(c_string(sender));
    // esm_class 4 is a receipt.
    body.extend([4, 0, 0, 0, 0, 0, 0, 0, 0]);
    body.push(u8::try_from(text.len()).unwrap());
    body.extend(text.bytes());
    body
}
