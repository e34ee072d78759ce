//! Requests about one phone number: a copy of what is stored about it, and its erasure. Facts and
//! money stay.

mod export;

use std::collections::BTreeSet;

use domain::ids::Shard;
use domain::verify::SECRET_BYTES;
use domain::{EventStream, KeyKind, Number, opt_out};

use crate::Messages;
use crate::admission::KeyAccess;
use crate::transactions::work;
use store::audit::{self, Actor};
use store::erasure::{self, NumberOf};
use store::error::Result;
use store::raw_receipts::{self, RawReceiptRow, Selection};
use store::{balances, opt_outs};

pub use export::NumberExport;

/// The number of messages that one transaction erases, which takes a few milliseconds.
const CHUNK: i64 = 500;
/// The maximum number of a carrier's receipts and answers for messages to a number.
const RECEIPTS_MAX: i64 = 10_000;
/// The prefixes that carriers write before the digits of an international number.
const PREFIXES: [&str; 3] = ["", "+", "00"];

/// The counts of erased rows, and of rows that still have the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erasure {
    pub messages: u64,
    /// Messages from the handset.
    pub inbound: u64,
    pub verifications: u64,
    pub opt_outs: u64,
    /// Receipts and answers as carriers sent them.
    pub receipts: u64,
    /// Messages that aren't final yet, and codes that are still accepted. They have the number
    /// until the next erasure.
    pub open: u64,
    /// Uploads whose rows aren't all messages yet. Their files may have the number.
    pub uploads: u64,
}

impl Erasure {
    fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.inbound += other.inbound;
        self.verifications += other.verifications;
        self.opt_outs += other.opt_outs;
        self.receipts += other.receipts;
        self.open += other.open;
        self.uploads += other.uploads;
    }
}

/// A number of one key of an application.
#[derive(Clone)]
struct Target {
    access: KeyAccess,
    /// The number as people write it: local, or international.
    forms: Vec<Number>,
    for_carrier: String,
}

impl Target {
    fn stream(&self) -> EventStream {
        self.access.stream()
    }

    /// Returns the number in each of its forms.
    fn numbers(&self) -> impl Iterator<Item = NumberOf<'_>> {
        self.forms.iter().map(|number| NumberOf {
            stream: self.stream(),
            digits: number.digits(),
            kind: number.kind(),
            for_carrier: &self.for_carrier,
        })
    }
}

impl Messages<'_> {
    /// Erases a phone number and the texts to and from it in an account's rows. An opt-out becomes
    /// a hash, so that sends to the number are still refused. Open messages, codes and uploads keep
    /// the number, and are counted.
    pub async fn erase_number(
        &self,
        actor: &Actor,
        account_id: i64,
        number: &Number,
    ) -> Result<Erasure> {
        let shard = self.shard_of_account(account_id).await?;
        let key = self.accounts().erased_key().await?;
        self.note(actor, account_id, "number.erase", number).await?;
        let targets = self.targets(account_id, number).await?;
        let receipts = self.receipts_of(shard, number, &targets).await?;
        let mut done = Erasure { receipts: receipts.len() as u64, ..Erasure::default() };
        let ids: Vec<i64> = receipts.iter().map(|receipt| receipt.id).collect();
        self.in_transaction(work!(|tx, _| erasure::delete_receipts(tx, &ids).await)).await?;
        for target in targets {
            done.add(self.erase_target(shard, &target, key).await?);
        }
        self.erase_mails(shard, account_id, number).await?;
        Ok(done)
    }

    /// Erases a phone number in the rows of all accounts, in receipts that match no message, and in
    /// the messages that no application got.
    pub async fn erase_number_everywhere(&self, actor: &Actor, number: &Number) -> Result<Erasure> {
        let mut done = Erasure::default();
        for account in self.accounts().all().await? {
            done.add(self.erase_number(actor, account.account.id, number).await?);
        }
        let handset = number.for_carrier(self.country_code());
        done.receipts += self.erase_receipts(number).await?;
        done.inbound += self
            .in_transaction(work!(|tx, _| erasure::erase_unassigned(tx, &handset).await))
            .await?;
        Ok(done)
    }

    /// Begins a copy of what is stored about a number in an account's rows.
    pub async fn export_number(
        &self,
        actor: &Actor,
        account_id: i64,
        number: &Number,
    ) -> Result<NumberExport> {
        self.note(actor, account_id, "number.export", number).await?;
        let targets = self.targets(account_id, number).await?;
        let shard = self.shard_of_account(account_id).await?;
        Ok(NumberExport::new(self.0, shard, number, targets))
    }

    async fn targets(&self, account_id: i64, number: &Number) -> Result<Vec<Target>> {
        let mut conn = self.read_of_account(account_id).await?;
        let code = self.country_code();
        let applications = erasure::applications(&mut conn, account_id).await?;
        let targets = applications.into_iter().flat_map(|(application_id, reference)| {
            [KeyKind::Live, KeyKind::Test].map(|kind| Target {
                access: KeyAccess { application_id, reference, kind },
                forms: number.forms(code),
                for_carrier: number.for_carrier(code),
            })
        });
        Ok(targets.collect())
    }

    /// Writes an entry into the audit log. Of the number, it has only the last three digits.
    async fn note(
        &self,
        actor: &Actor,
        account_id: i64,
        action: &'static str,
        number: &Number,
    ) -> Result<()> {
        let (actor, subject) = (*actor, Actor::Account(account_id).to_string());
        let masked = number.masked();
        self.in_transaction(work!(|tx, now| {
            audit::insert(tx, now, &actor, action, &subject, Some(&masked)).await
        }))
        .await
    }

    async fn erase_target(
        &self,
        shard: Shard,
        target: &Target,
        key: [u8; SECRET_BYTES],
    ) -> Result<Erasure> {
        let traced = target.clone();
        self.in_transaction(work!(|tx, _| {
            tx.at(shard);
            for number in traced.numbers() {
                number.erase_traces(tx).await?;
            }
            Ok(())
        }))
        .await?;
        let mut messages = 0;
        loop {
            let erased = self.erase_messages(shard, target.clone()).await?;
            messages += erased;
            if erased == 0 {
                break;
            }
        }
        let target = target.clone();
        self.in_transaction(work!(|tx, now| {
            tx.at(shard);
            let mut done = Erasure { messages, ..Erasure::default() };
            // Lock the application. Otherwise a commit group that read no opt-out could store a
            // message meanwhile.
            balances::of(tx, &[target.access.application_id]).await?;
            let (mut open, mut uploads) = (0, 0);
            for number in target.numbers() {
                open += number.open_messages(tx).await?;
                uploads = number.open_uploads(tx).await?;
            }
            let is_open = open + uploads > 0;
            if let Some(number) = target.numbers().next() {
                open += number.open_codes(tx, now).await?;
                done.inbound = number.erase_inbound(tx).await?;
                done.verifications = number.erase_codes(tx, now).await?;
                number.erase_events(tx).await?;
            }
            (done.open, done.uploads) = (open.unsigned_abs(), uploads.unsigned_abs());
            // Claims of open messages look up the opt-out by the number, so it isn't replaced by
            // its hash while messages are open.
            if !is_open {
                let erased = opt_out::erased(&key, &target.for_carrier);
                let is_listed =
                    opt_outs::erase(tx, target.stream(), &target.for_carrier, &erased).await?;
                done.opt_outs = u64::from(is_listed);
            }
            Ok(done)
        }))
        .await
    }

    /// Erases some messages. Returns their number.
    async fn erase_messages(&self, shard: Shard, target: Target) -> Result<u64> {
        self.in_transaction(work!(|tx, _| {
            tx.at(shard);
            let mut erased = 0;
            for number in target.numbers() {
                erased += number.erase_messages(tx, CHUNK).await?;
            }
            Ok(erased)
        }))
        .await
    }

    async fn erase_mails(&self, shard: Shard, account_id: i64, number: &Number) -> Result<()> {
        let digits: Vec<String> = number
            .forms(self.country_code())
            .iter()
            .map(|number| number.digits().to_owned())
            .collect();
        self.in_transaction(work!(|tx, _| {
            tx.at(shard);
            for digits in &digits {
                erasure::erase_mails(tx, account_id, digits).await?;
            }
            Ok(())
        }))
        .await
    }

    /// Returns the receipts and answers for an account's own messages to a number, without those
    /// for other accounts' messages.
    async fn receipts_of(
        &self,
        shard: Shard,
        number: &Number,
        targets: &[Target],
    ) -> Result<Vec<RawReceiptRow>> {
        let mut conn = self.store().read_at(shard).await?;
        let (mut own, mut messages) = (BTreeSet::new(), BTreeSet::new());
        for number in targets.iter().flat_map(Target::numbers) {
            own.extend(number.carrier_ids(&mut conn).await?);
            messages.extend(number.message_ids(&mut conn).await?);
        }
        let mut receipts = Vec::new();
        for carrier in &erasure::carriers(&mut conn).await? {
            for number in self.written_by(carrier, number) {
                let selection = Selection::Number(&number);
                let found = raw_receipts::list(&mut conn, carrier, selection, RECEIPTS_MAX).await?;
                receipts.extend(found.into_iter().filter(|receipt| {
                    let ids = [&receipt.written_id, &receipt.parameter_id];
                    let mut ids = ids.into_iter().flatten();
                    receipt.message_id.is_some_and(|id| messages.contains(&id))
                        || ids.any(|id| own.contains(&(carrier.clone(), id.clone())))
                }));
            }
        }
        Ok(receipts)
    }

    /// Deletes the receipts and answers of all carriers for messages to a number, and erases the
    /// number in unmatched receipts. These rows belong to no account.
    async fn erase_receipts(&self, number: &Number) -> Result<u64> {
        let (service, number) = (self.0.clone(), number.clone());
        self.in_transaction(work!(|tx, _| {
            let messages = service.messages();
            let (mut deleted, mut forms) = (0, messages.prefixed(&number));
            for carrier in &erasure::carriers(tx).await? {
                let written = messages.written_by(carrier, &number);
                for number in &written {
                    deleted += erasure::delete_raw(tx, carrier, number).await?;
                }
                forms.extend(written);
            }
            for number in &forms {
                erasure::erase_unmatched(tx, number).await?;
            }
            Ok(deleted)
        }))
        .await
    }

    /// Returns a number as a carrier may write it in receipts, and as the carrier gets it.
    fn written_by(&self, carrier: &str, number: &Number) -> BTreeSet<String> {
        let address = number.for_carrier(self.country_code());
        let mut written = self.prefixed(number);
        written.extend(self.inner.router.network().addresses(carrier, &address));
        written
    }

    /// Returns a number with each prefix that carriers write.
    fn prefixed(&self, number: &Number) -> BTreeSet<String> {
        let forms = number.forms(self.country_code());
        let written = forms
            .iter()
            .flat_map(|number| PREFIXES.map(|prefix| format!("{prefix}{}", number.digits())));
        written.collect()
    }
}
