//! Stores the deliveries of carriers.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::inbound::{self, DefaultAlphabet, PartPosition, ReceivedPart};
use domain::timestamp::DAY_MS;
use domain::{InboundId, Timestamp, message};
use sha2::{Digest as _, Sha256};

use super::Arrived;
use crate::{Delivery, run_detached_with_attempts};
use store::Tx;
use store::error::Result;
use store::gate::Priority;
use store::inbound::{PartsKey, StoredPart};

/// How long a whole message is noted. Within this time, a carrier repeats a delivery whose
/// acknowledgement it didn't get. SMPP has nothing that identifies a delivery, so an equal message
/// that a handset sends within this time counts as a repetition, too.
const MESSAGE_NOTED_MS: i64 = 5 * 60 * 1000;
/// How long a part is noted. A repeated part of a message that is stored already would become a
/// message of its own.
const PART_NOTED_MS: i64 = 60 * 60 * 1000;
/// How long a carrier's ID of a message is noted. IDs are unique, so this time can be long.
const ID_NOTED_MS: i64 = 3 * DAY_MS;

/// A message from a handset, or a part of one, as a carrier delivered it.
#[derive(Clone, Debug)]
pub struct InboundDelivery {
    /// The handset's number.
    pub number: String,
    /// Our number.
    pub recipient: String,
    pub content: InboundContent,
}

/// The content of a delivery.
#[derive(Clone)]
pub enum InboundContent {
    /// Octets that aren't decoded yet, and may be a part of a long message.
    Octets {
        esm_class: u8,
        data_coding: u8,
        payload: Vec<u8>,
        /// The position that the SAR parameters state.
        sar: Option<PartPosition>,
        alphabet: DefaultAlphabet,
    },
    /// A whole text that the carrier decoded.
    Text {
        text: String,
        /// The carrier's ID of the message. It identifies the delivery, if there is one.
        message_id: Option<String>,
    },
}

impl std::fmt::Debug for InboundContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Octets { .. } => "Octets(hidden)",
            Self::Text { .. } => "Text(hidden)",
        })
    }
}

impl InboundDelivery {
    /// Returns a hash of what a repeated delivery has in common with the first one.
    fn fingerprint(&self, carrier: &str) -> i64 {
        let mut hash = Sha256::new();
        let mut add = |value: &[u8]| {
            hash.update((value.len() as u64).to_be_bytes());
            hash.update(value);
        };
        add(carrier.as_bytes());
        match &self.content {
            InboundContent::Text { message_id: Some(id), .. } => add(id.as_bytes()),
            content => {
                add(self.number.as_bytes());
                add(self.recipient.as_bytes());
                content.add_to(add);
            }
        }
        let hash = hash.finalize();
        i64::from_be_bytes(std::array::from_fn(|octet| hash[octet]))
    }
}

impl InboundContent {
    /// Returns how long a delivery of this content is noted.
    fn noted_ms(&self) -> i64 {
        match self {
            Self::Text { message_id: Some(_), .. } => ID_NOTED_MS,
            Self::Text { message_id: None, .. } => MESSAGE_NOTED_MS,
            Self::Octets { esm_class, data_coding, payload, sar, .. } => {
                let part = ReceivedPart::parse(*esm_class, *data_coding, payload, *sar);
                if part.position().is_some() { PART_NOTED_MS } else { MESSAGE_NOTED_MS }
            }
        }
    }

    fn add_to(&self, mut add: impl FnMut(&[u8])) {
        match self {
            Self::Octets { esm_class, data_coding, payload, sar, .. } => {
                add(&[*esm_class, *data_coding]);
                if let Some(PartPosition { reference, total, sequence }) = sar {
                    add(&reference.to_be_bytes());
                    add(&[*total, *sequence]);
                }
                add(payload);
            }
            Self::Text { text, .. } => add(text.as_bytes()),
        }
    }
}

/// The rows that one call stores.
#[derive(Default)]
struct Received {
    messages: Vec<Arrived>,
    parts: Vec<StoredPart>,
}

impl Delivery<'_> {
    /// Stores messages from handsets, and parts of them. Durable when this returns, so the carrier
    /// can get its acknowledgements. A delivery that the carrier repeats is stored once.
    pub async fn record_inbound(
        &self,
        carrier: &str,
        mut deliveries: Vec<InboundDelivery>,
    ) -> Result<()> {
        let network = self.inner.router.network();
        for delivery in &mut deliveries {
            let number = network.handset(carrier, &delivery.number);
            let number = number.as_deref().unwrap_or(&delivery.number);
            delivery.number = self.carrier_form(number);
            delivery.recipient = self.carrier_form(&delivery.recipient);
        }
        let all: Arc<(String, Vec<InboundDelivery>)> = Arc::new((carrier.to_owned(), deliveries));
        run_detached_with_attempts(self, move |service| {
            let all = Arc::clone(&all);
            async move { Box::pin(service.delivery().store_inbound(&all.0, &all.1)).await }
        })
        .await
    }

    async fn store_inbound(&self, carrier: &str, deliveries: &[InboundDelivery]) -> Result<()> {
        let now = self.now();
        let mut tx = self.store().begin_as(Priority::Results).await?;
        let mut received = Received::default();
        let all = repetitions(&mut tx, carrier, deliveries, now).await?;
        for (delivery, is_repeated) in deliveries.iter().zip(&all) {
            self.read_inbound(carrier, (delivery, *is_repeated), now, &mut received);
        }
        let Received { mut messages, parts } = received;
        if !parts.is_empty() {
            store::inbound::keep_parts(&mut tx, &parts, carrier, now).await?;
            let keys: BTreeSet<PartsKey> = parts.iter().map(StoredPart::key).collect();
            let keys: Vec<PartsKey> = keys.into_iter().collect();
            messages.extend(self.join_parts(&mut tx, &keys, now).await?);
        }
        let assigned = self.assign(&mut tx, messages, false, now).await?;
        tx.commit().await?;
        self.committed(&assigned);
        let repeated = all.iter().filter(|is_repeated| **is_repeated).count();
        self.inner.inbound_counts.repeated.fetch_add(repeated as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Adds a delivery to the rows to store.
    fn read_inbound(
        &self,
        carrier: &str,
        (delivery, is_repeated): (&InboundDelivery, bool),
        now: Timestamp,
        received: &mut Received,
    ) {
        let id = self.next_id(now);
        let (number, recipient) = (delivery.number.clone(), delivery.recipient.clone());
        let carrier = carrier.to_owned();
        let (text, segments) = match &delivery.content {
            InboundContent::Text { text, .. } => {
                let text = inbound::without_nul(text.clone());
                let segments = message::segments(&text).max(1);
                (text, segments)
            }
            InboundContent::Octets { esm_class, data_coding, payload, sar, alphabet } => {
                let part = ReceivedPart::parse(*esm_class, *data_coding, payload, *sar);
                if part.position().is_some() && is_repeated {
                    return;
                }
                if let Some(position) = part.position() {
                    received.parts.push(StoredPart {
                        id,
                        carrier,
                        number,
                        recipient,
                        reference: position.reference.into(),
                        total: position.total.into(),
                        sequence: position.sequence.into(),
                        esm_class: (*esm_class).into(),
                        data_coding: (*data_coding).into(),
                        alphabet: alphabet.as_str().to_owned(),
                        payload: hex::encode(payload),
                        received_at: now,
                    });
                    return;
                }
                let parts = [part];
                (inbound::join(&parts, *alphabet), inbound::segments(&parts, *alphabet))
            }
        };
        let segments = i64::try_from(segments).unwrap_or(i64::MAX);
        let id = InboundId(id);
        received.messages.push(Arrived {
            id,
            carrier,
            number,
            recipient,
            text,
            segments,
            is_whole: true,
            is_repeated,
        });
    }
}

/// Notes the deliveries. Returns for each whether the carrier delivered it before.
async fn repetitions(
    tx: &mut Tx<'_>,
    carrier: &str,
    deliveries: &[InboundDelivery],
    now: Timestamp,
) -> Result<Vec<bool>> {
    let all: Vec<i64> = deliveries.iter().map(|it| it.fingerprint(carrier)).collect();
    let expiries = deliveries.iter().map(|it| now.plus_ms(it.content.noted_ms()));
    let notes: BTreeMap<i64, Timestamp> = all.iter().copied().zip(expiries).collect();
    let new = store::inbound::note(tx, notes, now).await?;
    let mut new: HashSet<i64> = new.into_iter().collect();
    Ok(all.iter().map(|fingerprint| !new.remove(fingerprint)).collect())
}
