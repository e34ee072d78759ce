//! Test messages of operators. They belong to no application and cost nothing. Nothing about them
//! is stored, except their receipts until the test takes them.

use std::time::Instant;

use domain::ids::{Shard, compose_id};
use domain::{ApplicationId, MessageStatus, MessageText, Timestamp, Transid};

use crate::delivery::commands::TestCommand;
use crate::transactions::work;
use crate::{Claimed, Delivery, Lease, MESSAGE_LIFETIME_MS};
use store::carriers;
use store::error::Result;
use store::unmatched_receipts::{self, Selection};

/// The maximum number of a carrier's unmatched receipts that are searched for the test's number.
const SEARCHED_MAX: i64 = 200;

/// A receipt that may be for a test message.
#[derive(Clone, Debug)]
pub struct TestReceipt {
    /// The receipt's message ID. Empty if it has none.
    pub id: String,
    pub status: MessageStatus,
    pub error: Option<String>,
}

impl Delivery<'_> {
    /// Keeps the receipts of a test message out of this process's figures. This process may get
    /// these receipts even if another process submits the message.
    pub fn expect_test(&self, test: &TestCommand) {
        let (number, sender) = (test.number(), test.sender.as_deref());
        let (address, _) = self.inner.router.written(&test.carrier, &number, sender);
        self.inner.figures.test(&test.carrier, [address]);
    }

    /// Keeps receipts with these carrier message IDs out of this process's figures.
    pub fn expect_test_receipts(&self, carrier: &str, ids: Vec<String>) {
        self.inner.figures.test(carrier, ids);
    }

    pub fn test_message(&self, test: &TestCommand) -> (Lease, Claimed) {
        let (now, number) = (self.now(), test.number());
        let sender = test.sender.as_deref();
        let (address, sender) = self.inner.router.written(&test.carrier, &number, sender);
        let message = Claimed {
            id: Transid(self.next_id(now)),
            application_id: ApplicationId(0),
            reference: None,
            test: false,
            number,
            address,
            sender,
            message: MessageText::from_stored(test.text.clone()),
            code: None,
            submitted_segments: Vec::new(),
            expires_at: now.plus_ms(MESSAGE_LIFETIME_MS),
        };
        (Lease::begin(self, Shard::FIRST, Instant::now(), now), message)
    }

    /// Whether a carrier delivers nothing.
    pub fn is_sandbox(&self, carrier: &str) -> bool {
        self.inner.router.network().is_sandbox(carrier)
    }

    /// Takes the receipts with these carrier message IDs that came to any process since a time.
    pub async fn take_test_receipts(
        &self,
        carrier: &str,
        ids: Vec<String>,
        since: Timestamp,
    ) -> Result<Vec<TestReceipt>> {
        let carrier = carrier.to_owned();
        self.in_transaction(work!(|tx, _now| {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let taken = unmatched_receipts::take(tx, &carrier, &ids, since).await?;
            carriers::add_unmatched(tx, &carrier, 0, taken.len()).await?;
            let receipts = taken.into_iter().map(|taken| TestReceipt {
                id: taken.carrier_message_id,
                status: taken.status,
                error: taken.error,
            });
            Ok(receipts.collect())
        }))
        .await
    }

    /// Returns the unmatched receipts for a number, as the carrier gets it, that came since a time.
    pub async fn receipts_for_number(
        &self,
        carrier: &str,
        number: &str,
        since: Timestamp,
    ) -> Result<Vec<TestReceipt>> {
        let mut conn = self.store().read().await?;
        let after = compose_id(since.unix_ms(), 0);
        let newest = Selection::Newest(after);
        let found = unmatched_receipts::list(&mut conn, carrier, newest, SEARCHED_MAX).await?;
        let plain = number.trim_start_matches('+');
        let of_number = found.into_iter().filter(|waiting| waiting.number == plain);
        let receipts = of_number.map(|waiting| TestReceipt {
            id: waiting.text_id.or(waiting.parameter_id).unwrap_or(waiting.carrier_message_id),
            status: waiting.status,
            error: waiting.error,
        });
        Ok(receipts.collect())
    }
}
