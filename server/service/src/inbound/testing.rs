//! Messages from handsets that no carrier delivers: test messages, which a test key delivers
//! itself, and the answers of a reserved test number.

use domain::test_number::{ANSWER, answered_number};
use domain::{
    EventStream, InboundId, InboundRecord, KeyKind, MessageStatus, Money, Number, Reason,
    TestNumber, Timestamp, message,
};
use serde::{Deserialize, Serialize};

use super::Arrived;
use super::assigning::{OfShard, record};
use crate::admission::idempotency::{Digest, IdempotencyKey, Once};
use crate::transactions::work;
use crate::wakeups::Wakeup;
use crate::{Delivery, KeyAccess, Messages, Receipt, SANDBOX_CARRIER, Service};
use store::error::Result;
use store::{Tx, applications, messages};

/// A test message from a handset.
pub struct TestInbound {
    pub number: Number,
    /// The number that the handset sends to. It needs no assignment.
    pub recipient: Number,
    /// At least one character, and no NUL.
    pub message: String,
}

/// A test message that arrived.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReceivedTest {
    pub record: InboundRecord,
    /// Whether an earlier request with the same idempotency key delivered it.
    #[serde(skip)]
    pub replayed: bool,
}

impl Messages<'_> {
    /// Delivers a test message to the application of a test key. A command about opt-outs changes
    /// the test key's list. The message counts as one of the key's messages of the day.
    ///
    /// # Errors
    /// `IdempotencyMismatch`. The reason is `TestKeyRequired` for a live key, and `RateLimited` if
    /// the test key may send no more messages today.
    pub async fn receive_test(
        &self,
        access: &KeyAccess,
        inbound: TestInbound,
        key: Option<&IdempotencyKey>,
    ) -> Result<std::result::Result<ReceivedTest, Reason>> {
        let list = access.stream();
        if !list.test {
            return Ok(Err(Reason::TestKeyRequired));
        }
        let once = key.map(|key| Once::new(list, key, inbound.digest()));
        let (service, reference) = (self.0.clone(), access.reference);
        let received = self.in_transaction_of(
            reference,
            work!(|tx, now| {
                if let Some(once) = &once
                    && let Some(answered) = once.answered::<ReceivedTest>(tx, now).await?
                {
                    return Ok(Ok(ReceivedTest { replayed: true, ..answered }));
                }
                let found = applications::keys_by_references(tx, &[reference]).await?;
                let row = found.into_iter().next().map(|(_, row)| row);
                let Some(row) = row else { return Ok(Err(Reason::ApiInvalid)) };
                let mut funds = service.messages().funds(row, now);
                if !funds.may_send(KeyKind::Test, 1) {
                    return Ok(Err(Reason::RateLimited));
                }
                funds.spend(KeyKind::Test, Money::ZERO, 1);
                let counted: Vec<_> = funds.changed(now).into_iter().collect();
                applications::charge(tx, &counted).await?;
                let ends = (&inbound.number, &inbound.recipient);
                let arrived = service.simulated(ends, inbound.message.clone(), now);
                let record = service.store_simulated(tx, list, arrived, now).await?;
                let received = ReceivedTest { record, replayed: false };
                if let Some(once) = once {
                    once.keep(tx, &received, now).await?;
                }
                Ok(Ok(received))
            }),
        );
        let received = received.await?;
        self.inner.wake(Wakeup::Queued);
        Ok(received)
    }
}

impl Delivery<'_> {
    /// Stores the receipt of a message that the sandbox delivered to the number that answers, and
    /// the answer of its recipient. A message that is final already has its answer.
    pub async fn record_test_answer(&self, receipt: Receipt) -> Result<()> {
        let (application_id, id) = (receipt.application_id, receipt.id);
        let shard = self.shard_of_application(application_id).await?;
        let service = self.0.clone();
        self.in_transaction(work!(|tx, now| {
            tx.at(shard);
            let Some(message) = messages::locate(tx, id).await? else {
                return Ok(());
            };
            messages::lock(tx, &[id]).await?;
            let before = messages::status(tx, id).await?;
            if before.is_some_and(MessageStatus::is_final) {
                return Ok(());
            }
            service.delivery().write_receipts(tx, vec![receipt]).await?;
            let list = EventStream { application_id, test: message.test };
            let ends = (&TestNumber::Answering.number(), &answered_number());
            let arrived = service.simulated(ends, ANSWER.to_owned(), now);
            service.store_simulated(tx, list, arrived, now).await.map(drop)
        }))
        .await
    }
}

impl Service {
    fn simulated(
        &self,
        (number, recipient): (&Number, &Number),
        text: String,
        now: Timestamp,
    ) -> Arrived {
        let segments = message::segments(&text).max(1);
        Arrived {
            id: InboundId(self.next_id(now)),
            carrier: SANDBOX_CARRIER.to_owned(),
            number: number.for_carrier(self.country_code()),
            recipient: recipient.for_carrier(self.country_code()),
            text,
            segments: i64::try_from(segments).unwrap_or(i64::MAX),
            is_whole: true,
            is_repeated: false,
        }
    }

    /// Stores a message for an application, with its event, and executes its command.
    async fn store_simulated(
        &self,
        tx: &mut Tx<'_>,
        list: EventStream,
        arrived: Arrived,
        now: Timestamp,
    ) -> Result<InboundRecord> {
        let command = self.command(&arrived, None);
        let mut of_shard = OfShard::default();
        if let Some(command) = command {
            let command = self.command_of_test(tx, &arrived, command, list).await?;
            of_shard.commands.push(command);
        }
        let record = InboundRecord { test: list.test, ..record(arrived, None, command) };
        of_shard.messages.push((list.application_id, record.clone()));
        self.store_at_shard(tx, of_shard, now).await?;
        Ok(record)
    }
}

impl TestInbound {
    fn digest(&self) -> Digest {
        let mut digest = Digest::new("test inbound");
        digest.text(self.number.digits());
        digest.text(self.recipient.digits());
        digest.text(&self.message);
        digest
    }
}
