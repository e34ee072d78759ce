//! The messages of one customer, and their way through the carriers acme and beta.

use domain::carrier_figures::CarrierEvent;
use domain::records::MessageDetail;
use domain::{Kind, LostAnswer, MessageStatus, Transid};
use service::{
    CarrierReceipt, Claimed, Lease, RawReceipt, ReceiptMatch, SubmitOutcome, Submitted,
    WrittenReceipt,
};

use crate::database::Backend;
use crate::network::{answered, network};
use crate::world::{Customer, World, money};

/// How long a message waits for a receipt before it is submitted once more.
pub const RESEND_MS: i64 = 30_000;

pub struct Sending {
    pub world: World,
    pub customer: Customer,
}

/// A message that was claimed for a carrier, with its lease.
pub struct Handed {
    pub message: Claimed,
    carrier: String,
    lease: Lease,
}

impl Handed {
    pub fn id(&self) -> Transid {
        self.message.id
    }
}

impl Sending {
    /// All messages go to acme.
    pub async fn by_acme(backend: Backend) -> Self {
        Self::by(backend, &[("acme", 1, None)]).await
    }

    /// All messages go to acme, or to beta if acme can't accept them.
    pub async fn by_acme_or_beta(backend: Backend) -> Self {
        Self::by(backend, &[("acme", 1, None), ("beta", 2, None)]).await
    }

    /// Uses routes as in [`network`]. The customer has a balance of 100.
    pub async fn by(backend: Backend, routes: &[(&str, u32, Option<Kind>)]) -> Self {
        let world = World::with(backend, network(routes)).await;
        let customer = world.active("one@example.org", "100").await;
        Self { world, customer }
    }

    /// Ends the process and starts it again.
    pub async fn reopen(self) -> Self {
        Self { world: self.world.reopen().await, ..self }
    }

    /// Sends a message to a local number.
    pub async fn send(&self) -> Transid {
        let sent = self.world.send(&self.customer.live, "12345678").await;
        sent.unwrap().transid.unwrap()
    }

    /// Sends a message and claims it for acme.
    pub async fn submitted(&self) -> Handed {
        self.send().await;
        self.claim_one("acme").await
    }

    /// Claims all due messages of a carrier.
    pub async fn claim(&self, carrier: &str) -> Vec<Handed> {
        let (lease, messages) = self.world.service.delivery().claim(carrier, 100).await.unwrap();
        let handed = |message| Handed { message, carrier: carrier.to_owned(), lease };
        messages.into_iter().map(handed).collect()
    }

    /// Claims the only due message of a carrier.
    pub async fn claim_one(&self, carrier: &str) -> Handed {
        let mut claimed = self.claim(carrier).await;
        assert_eq!(claimed.len(), 1);
        claimed.remove(0)
    }

    pub async fn assert_nothing_due(&self, carrier: &str) {
        assert_eq!(self.claim(carrier).await.len(), 0);
    }

    /// Records the outcome of submitting a message of one segment.
    pub async fn answer(&self, handed: &Handed, outcome: SubmitOutcome) {
        self.answer_segments(handed, 1, &[(1, outcome)]).await;
    }

    /// Records the outcomes of submitting a message's segments. Returns the message if the carrier
    /// has accepted every segment.
    pub async fn answer_segments(
        &self,
        handed: &Handed,
        segments: u16,
        outcomes: &[(u16, SubmitOutcome)],
    ) -> Vec<Transid> {
        let result = Submitted {
            segments,
            outcomes: outcomes.to_vec(),
            ..answered(&handed.message, SubmitOutcome::NotSent)
        };
        let (carrier, lease) = (&handed.carrier, &handed.lease);
        self.world.record(carrier, lease, vec![result]).await
    }

    /// Records the carrier message IDs of some segments before the other segments are answered.
    pub async fn answer_early(
        &self,
        handed: &Handed,
        segments: u16,
        outcomes: &[(u16, SubmitOutcome)],
    ) {
        let result = Submitted {
            segments,
            lease: handed.lease,
            outcomes: outcomes.to_vec(),
            ..answered(&handed.message, SubmitOutcome::NotSent)
        };
        let delivery = self.world.service.delivery();
        delivery.record_early_ids(&handed.carrier, vec![result]).await.unwrap();
    }

    /// Returns how often a message's timeline has this detail.
    pub async fn notes(&self, id: Transid, detail: &str) -> usize {
        let timeline = self.detail(id).await.timeline;
        timeline.iter().filter(|entry| entry.detail.as_deref() == Some(detail)).count()
    }

    /// Records a receipt from acme. Returns what it matched.
    pub async fn receive(&self, receipt: CarrierReceipt) -> ReceiptMatch {
        let service = &self.world.service;
        let delivery = service.delivery();
        let taken = delivery.record_carrier_receipts("acme", vec![receipt]);
        taken.await.unwrap()[0]
    }

    /// Keeps a receipt from acme as it came.
    pub async fn keep_raw(&self, raw: RawReceipt) {
        let delivery = self.world.service.delivery();
        let mut kept = vec![raw];
        delivery.record_unknown_states("acme", &mut kept).await.unwrap();
        delivery.keep_raw_receipts("acme", kept);
        delivery.store_raw_receipts().await.unwrap();
    }

    /// Returns how many answers and receipts of acme counted as this event.
    pub fn count(&self, event: CarrierEvent) -> u64 {
        self.world.service.delivery().carrier_counts()["acme"].get(event)
    }

    /// Sets the policy for messages without a response.
    pub async fn set_lost_answer(&self, policy: LostAnswer) {
        let (account, reference) = (self.customer.account.id, self.customer.reference);
        let service = &self.world.service;
        let applications = service.applications();
        let set = applications.set_lost_answer(account, reference, policy);
        set.await.unwrap();
    }

    pub async fn detail(&self, id: Transid) -> MessageDetail {
        self.world.message(&self.customer, id).await
    }

    pub async fn assert_status(&self, id: Transid, status: MessageStatus) {
        assert_eq!(self.detail(id).await.record.status, status);
    }

    /// Asserts a message's final status and its error.
    pub async fn assert_ended(&self, id: Transid, status: MessageStatus, error: &str) {
        let record = self.detail(id).await.record;
        assert_eq!((record.status, record.error.as_deref()), (status, Some(error)));
    }

    pub async fn assert_balance(&self, balance: &str) {
        assert_eq!(self.world.balance(&self.customer.live).await, money(balance));
    }

    /// Asserts that every invariant holds.
    pub async fn assert_sound(&self) {
        self.world.assert_sound().await;
    }
}

/// Builds a receipt for this carrier message ID.
pub fn receipt(name: &str, status: MessageStatus) -> CarrierReceipt {
    CarrierReceipt {
        message_ids: vec![name.to_owned()],
        status,
        error: (status != MessageStatus::Delivered).then(|| status.to_string()),
        user_reference: None,
        number: String::new(),
        sender: String::new(),
        submitted_at: None,
        received_at: None,
        written: WrittenReceipt::default(),
    }
}
