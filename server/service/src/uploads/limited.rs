//! Rows of an upload that the application's limits refuse. They become messages that are rejected
//! at once.

use std::collections::{BTreeMap, HashMap};

use domain::ids::nth_id;
use domain::limits::RecentMessages;
use domain::pumping::block_of;
use domain::{
    AlarmKind, DeliveryError, Guard, MessageStatus, Number, Reason, SendLimits, Timestamp, Transid,
};

use crate::Service;
use crate::applications::alarms::Noted;
use crate::delivery::opted_out::withdraw;
use crate::money::releases::settle;
use crate::uploads::spool_format::Chunk;
use store::batches::UnexpandedBatch;
use store::error::Result;
use store::recipients::Recipient;
use store::{Tx, alarms, applications, recipients};

/// The messages to reject in a transaction that expands an upload.
pub(super) struct LimitedMessages<'a> {
    service: &'a Service,
    upload: &'a UnexpandedBatch,
    limits: SendLimits,
    found: BTreeMap<&'static str, (DeliveryError, Vec<Transid>)>,
    /// The rows that aren't refused, if the application is checked for traffic pumping.
    watched: Vec<Number>,
    /// How many of these rows go to each block of similar numbers.
    pumped: HashMap<String, u32>,
}

impl<'a> LimitedMessages<'a> {
    /// Reads the application's limits. Doesn't lock them: changed limits take effect in the next
    /// transaction. Uploads whose recipients are limited are expanded one after the other.
    pub(super) async fn of(
        service: &'a Service,
        tx: &mut Tx<'_>,
        upload: &'a UnexpandedBatch,
    ) -> Result<Self> {
        let row = applications::keys_by_reference(tx, upload.reference).await?;
        let limits = row.map(|row| row.limits().clone()).unwrap_or_default();
        if limits.limits_recipients() {
            recipients::lock(tx, upload.application_id).await?;
        }
        let (found, watched, pumped) = (BTreeMap::new(), Vec::new(), HashMap::new());
        Ok(Self { service, upload, limits, found, watched, pumped })
    }

    /// Notes the rows of a chunk that the limits refuse. `first` is the number of rows before the
    /// chunk, whose messages aren't stored yet.
    pub(super) async fn check(
        &mut self,
        tx: &mut Tx<'_>,
        first: i64,
        chunk: &Chunk,
        now: Timestamp,
    ) -> Result<()> {
        let watches = self.limits.traffic_pumping != Guard::Off;
        if !self.limits.refuses_numbers() && !self.limits.limits_recipients() && !watches {
            return Ok(());
        }
        let rows = chunk.routing_facts(None)?.into_iter();
        let numbers: Vec<Number> =
            rows.map(|(digits, kind, _)| Number::from_stored(digits, kind)).collect();
        let mut recent = self.recent(tx, &numbers, now).await?;
        for (slot, number) in (first..).zip(&numbers) {
            let refusal = self.refusal(number, &mut recent);
            let mut pumping = || self.is_pumping(number).then_some(DeliveryError::TrafficPumping);
            if let Some(error) = refusal.or_else(&mut pumping) {
                let id = Transid(nth_id(self.upload.first_message_id, slot));
                let (_, ids) = self.found.entry(error.as_str()).or_insert((error, Vec::new()));
                ids.push(id);
            }
        }
        Ok(())
    }

    /// Returns how many messages the recipients got, if the limits depend on that.
    async fn recent(
        &self,
        tx: &mut Tx<'_>,
        numbers: &[Number],
        now: Timestamp,
    ) -> Result<HashMap<String, RecentMessages>> {
        if !self.limits.limits_recipients() {
            return Ok(HashMap::new());
        }
        let code = self.service.country_code();
        let (application, test) = (self.upload.application_id, self.upload.test);
        let mut rows: Vec<Recipient> =
            numbers.iter().map(|number| (application, test, number.for_carrier(code))).collect();
        // The rows are sorted by number.
        rows.dedup();
        let recent = recipients::recent(tx, &rows, code, now).await?.into_iter();
        Ok(recent.map(|((_, _, number), recent)| (number, recent)).collect())
    }

    /// Returns why the limits refuse a row. If they don't, counts it among the recipient's
    /// messages.
    fn refusal(
        &self,
        number: &Number,
        recent: &mut HashMap<String, RecentMessages>,
    ) -> Option<DeliveryError> {
        let code = self.service.country_code();
        match self.limits.refuse_number(number, code) {
            Some(Reason::DoubtfulNumber) => return Some(DeliveryError::DoubtfulNumber),
            Some(_) => return Some(DeliveryError::InternationalDisabled),
            None if !self.limits.limits_recipients() => return None,
            None => {}
        }
        let number = number.for_carrier(code);
        let recent = recent.entry(number).or_default();
        if !self.limits.admits_recipient(*recent) {
            return Some(DeliveryError::RecipientFlooded);
        }
        *recent = recent.and(1);
        None
    }

    /// Returns whether the limits refuse a row as traffic pumping. If they don't, counts it.
    fn is_pumping(&mut self, number: &Number) -> bool {
        let limits = &self.limits;
        if limits.traffic_pumping == Guard::Off {
            return false;
        }
        if limits.traffic_pumping == Guard::Block {
            let carrier_number = number.for_carrier(self.service.country_code());
            let to = (self.upload.application_id, self.upload.test, carrier_number.as_str());
            let (pumping, now) = (&self.service.inner.pumping, self.service.now());
            let of_these = self.pumped.entry(block_of(&carrier_number).to_owned()).or_default();
            if pumping.refuses(to, limits.traffic_pumping_messages, *of_these, now) {
                let noted = Noted::of_number(number.masked(), &carrier_number, None);
                let reference = self.upload.reference;
                self.service.inner.alarms.note(reference, AlarmKind::TrafficPumping, noted);
                return true;
            }
            *of_these += 1;
        }
        self.watched.push(number.clone());
        false
    }

    /// Counts the rows that aren't refused. Call this after the commit: a transaction that stored
    /// nothing is retried, and its rows would count twice.
    pub(super) fn watch(self) {
        let (upload, applications) = (self.upload, self.service.applications());
        for number in self.watched {
            let carrier_number = number.for_carrier(self.service.country_code());
            let to = (upload.application_id, upload.test, carrier_number.as_str());
            let noted = || Noted::of_number(number.masked(), &carrier_number, None);
            applications.watch_pumping(upload.reference, to, &self.limits, noted);
        }
    }

    /// Rejects the messages, which are stored by now, and releases their prices.
    pub(super) async fn reject(&self, tx: &mut Tx<'_>, now: Timestamp) -> Result<()> {
        for (error, ids) in self.found.values() {
            let outcome = (MessageStatus::Rejected, Some(*error));
            let rejected = withdraw(tx, ids, outcome, now).await?;
            settle(tx, &rejected, now).await?;
        }
        // This runs after the withdrawals, which lock the application's row. Otherwise, two
        // expansions could deadlock.
        for (error, ids) in self.found.values() {
            let counted = (error.as_str(), (ids.len() as u64).cast_signed());
            alarms::count(tx, self.upload.application_id, counted, now.day()).await?;
        }
        Ok(())
    }
}
