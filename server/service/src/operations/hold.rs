//! The hold of a restored database, and the reconciliation that ends it.
//!
//! A backup lacks what happened after it. Messages that were queued at the time of the backup may
//! have been submitted since. Therefore, a process that finds the database at a new place holds all
//! messages: it accepts receipts, but submits nothing. Rows of uploads still become messages,
//! because only messages can be reconciled.

use domain::ids::{Shard, id_unix_ms};
use domain::{LostAnswer, MessageStatus, Money, Timestamp, Transid};
use store::audit::{self, Actor};
use store::claims::EndedLease;
use store::error::{Error, Fault, Refusal, Result};
use store::hold::{self, HeldMessage};
use store::messages::{self, Ending};
use store::timeline::{self, NewEntry};
use store::{Store, Tx, queue};

use crate::money::releases::settle;
use crate::operations::reconciling::{CHUNK, ExportLine, Proof, Proofs, Proven};
use crate::transactions::work;
use crate::wakeups::Wakeup;
use crate::{Leases, Operations};

/// [`CHUNK`] as a length.
const CHUNK_LEN: usize = 500;
/// The subject of entries in the audit log.
const SUBJECT: &str = "messages";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// When the restored database was first opened.
    pub since: Timestamp,
    /// The number of messages in the queue that may have been submitted before `since`.
    pub waiting: i64,
}

/// An operator's decisions about the held messages. They are applied in the order of the fields.
#[derive(Clone, Debug, Default)]
pub struct Reconciliation {
    /// Whether receipts that came since the hold began show which messages were sent.
    pub by_receipts: bool,
    /// A carrier's list of the messages that it got.
    pub export: Option<Export>,
    /// Messages that were due before this time are cancelled, and their prices are released.
    pub discard_before: Option<Timestamp>,
    /// The decision about all other messages. It ends the hold.
    pub rest: Option<Rest>,
}

/// A carrier's list of the messages that it got since the backup.
#[derive(Clone, Debug)]
pub struct Export {
    pub carrier: String,
    pub lines: Vec<ExportLine>,
}

/// The decision about messages without any proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// They are submitted.
    Send,
    /// They become `unknown` and aren't submitted.
    Unknown,
}

/// The outcome of a reconciliation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    pub by_receipts: usize,
    /// The number of messages that the carrier's list showed to be sent.
    pub by_export: usize,
    /// The number of messages that were cancelled.
    pub discarded: usize,
    /// The amount that was released for the cancelled messages.
    pub released: Money,
    /// The number of messages that became `unknown`, because nothing was known about them or because
    /// a line of the carrier's list may be about another message.
    pub unknown: usize,
    /// The number of messages that are left in the queue.
    pub left: i64,
    pub ended: bool,
}

/// Begins the hold if this database isn't where it was when it was last opened: it is a backup or
/// another copy. `last_id` is the greatest ID of a message. Returns the place.
pub(crate) async fn begin_if_moved(store: &Store, last_id: i64, now: Timestamp) -> Result<String> {
    let here = store.place().await?;
    let mut conn = store.read().await?;
    let known = hold::known_place(&mut conn).await?;
    let is_held = hold::since(&mut conn).await?.is_some();
    drop(conn);
    if known.as_deref() == Some(&here) {
        if is_held && last_id > 0 {
            tracing::warn!("{HELD}");
        }
        return Ok(here);
    }
    let mut tx = store.begin().await?;
    match hold::known_place(&mut tx).await? {
        Some(known) if known != here => {
            begin(&mut tx, &Actor::System, after(last_id), now).await?;
            tracing::warn!("this database was restored from a backup or copied. {HELD}");
        }
        Some(_) => {}
        None => tracing::info!("this database is new: it has no accounts yet"),
    }
    hold::set_place(&mut tx, Some(&here)).await?;
    tx.commit().await?;
    Ok(here)
}

/// The log's line while messages are held.
pub(super) const HELD: &str = "Messages are held: nothing is submitted until `heliograph message \
                               reconcile` has decided about the queued messages";

/// Returns the time one millisecond after the time in an ID.
pub(super) fn after(id: i64) -> Timestamp {
    Timestamp::from_unix_ms(id_unix_ms(id)).plus_ms(1)
}

/// Begins a hold of the messages that were accepted before now, or before `least` if that is later:
/// our clock may be behind the clock of the backup.
pub(super) async fn begin(
    tx: &mut Tx<'_>,
    actor: &Actor,
    least: Timestamp,
    now: Timestamp,
) -> Result<()> {
    hold::begin(tx, now.max(least)).await?;
    audit::insert(tx, now, actor, "messages.hold", SUBJECT, None).await
}

impl Operations<'_> {
    /// Returns since when messages are held. `None` if they aren't.
    pub async fn hold_since(&self) -> Result<Option<Timestamp>> {
        hold::since(&mut self.store().read().await?).await
    }

    /// Returns the hold. `None` if messages aren't held.
    pub async fn hold(&self) -> Result<Option<Hold>> {
        let Some(since) = self.hold_since().await? else {
            return Ok(None);
        };
        let counts = self.in_each_shard(|shard| async move {
            hold::count(&mut self.store().read_at(shard).await?, since).await
        });
        Ok(Some(Hold { since, waiting: counts.await?.into_iter().sum() }))
    }

    /// Returns how long ago the last backup was made, in milliseconds. Without a backup, the time
    /// since the first start.
    pub async fn backup_age_ms(&self) -> Result<i64> {
        let at = hold::last_backup(&mut self.store().read().await?).await?;
        Ok(self.now().ms_since(at).max(0))
    }

    /// Whether the tables are distributed over several servers.
    pub fn is_distributed(&self) -> bool {
        self.store().is_distributed()
    }

    /// Notes that a backup was made.
    pub async fn note_backup(&self, at: Timestamp) -> Result<()> {
        self.in_transaction(work!(|tx, _| hold::backed_up(tx, at).await)).await
    }

    /// Holds messages on an operator's command. Needed after the disk or the whole server was
    /// copied back, because such a copy looks like the original.
    pub async fn begin_hold(&self, actor: &Actor) -> Result<()> {
        let actor = *actor;
        self.in_transaction(work!(|tx, now| begin(tx, &actor, now, now).await)).await?;
        self.inner.wake(Wakeup::Drained);
        Ok(())
    }

    /// Decides about the held messages.
    ///
    /// # Errors
    /// `NotHeld`, `NoSuchCarrier`, `UploadHeld`, `StillSubmitting`.
    pub async fn reconcile(&self, actor: &Actor, by: Reconciliation) -> Result<Reconciled> {
        let since = self.hold_since().await?.ok_or(Refusal::NotHeld)?;
        self.must_be_expanded(since).await?;
        // Messages that were being submitted when the hold began or the backup was made are leased.
        // Ending the leases first returns some of them to the queue, so the proofs below are
        // applied to them too. A lease that hasn't ended may belong to a running process.
        self.delivery().end_leases(Leases::OverInBackup).await?;
        self.must_be_answered(since).await?;
        let mut done = Reconciled::default();
        if by.by_receipts {
            done.by_receipts = self.sort_by_receipts(actor, since).await?;
        }
        if let Some(export) = &by.export {
            (done.by_export, done.unknown) = self.sort_by_export(actor, since, export).await?;
        }
        if let Some(before) = by.discard_before {
            (done.discarded, done.released) = self.discard(actor, since, before).await?;
        }
        if by.rest == Some(Rest::Unknown) {
            done.unknown += self.mark_unknown(actor, since).await?;
        }
        done.left = self.hold().await?.map_or(0, |hold| hold.waiting);
        if by.rest.is_some() {
            let (actor, left) = (*actor, done.left);
            self.in_transaction(work!(|tx, now| {
                store::carriers::resume(tx, hold::ALL_CARRIERS).await?;
                let detail = format!("{left} messages are submitted");
                audit::insert(tx, now, &actor, "messages.release", SUBJECT, Some(&detail)).await
            }))
            .await?;
            self.inner.wake(Wakeup::Drained);
            self.inner.wake(Wakeup::Queued);
            done.ended = true;
        }
        Ok(done)
    }

    /// Returns an error while rows of held uploads aren't messages yet.
    async fn must_be_expanded(&self, since: Timestamp) -> Result<()> {
        let waiting = self.in_each_shard(|shard| async move {
            hold::unexpanded(&mut self.store().read_at(shard).await?, since).await
        });
        match waiting.await?.into_iter().flatten().next() {
            Some(batch) => Err(Refusal::UploadHeld { batch: batch.to_string() }.into()),
            None => Ok(()),
        }
    }

    /// Returns an error while held messages are being submitted.
    async fn must_be_answered(&self, since: Timestamp) -> Result<()> {
        let submitting = self.in_each_shard(|shard| async move {
            hold::is_submitting(&mut self.store().read_at(shard).await?, since).await
        });
        if submitting.await?.contains(&true) {
            return Err(Refusal::StillSubmitting.into());
        }
        Ok(())
    }

    async fn sort_by_receipts(&self, actor: &Actor, since: Timestamp) -> Result<usize> {
        let mut sorted = 0;
        let network = self.inner.router.network();
        for carrier in network.carriers.iter().filter(|carrier| !carrier.sandbox) {
            let proofs = Proof::of_receipts(self.0, &carrier.name, since).await?;
            let proofs = Proofs::new(&network, &carrier.name, proofs);
            let proven = self.proven(since, &proofs).await?;
            self.take_out(actor, &carrier.name, "a receipt", &proven).await?;
            self.delivery().match_all(&carrier.name).await?;
            sorted += proven.len();
        }
        Ok(sorted)
    }

    /// Returns how many messages the list showed to be sent, and how many became `unknown`.
    async fn sort_by_export(
        &self,
        actor: &Actor,
        since: Timestamp,
        export: &Export,
    ) -> Result<(usize, usize)> {
        let (network, carrier) = (self.inner.router.network(), &export.carrier);
        if !network.carriers.iter().any(|known| known.name == *carrier) {
            return Err(Refusal::NoSuchCarrier.into());
        }
        let proofs = Proofs::new(&network, carrier, Proof::of_export(&export.lines));
        let proven = self.proven(since, &proofs).await?;
        self.take_out(actor, carrier, "the carrier's list", &proven).await?;
        let answers = proofs.answers(&proven, network.takes_whole(carrier));
        for some in answers.chunks(CHUNK_LEN) {
            self.delivery().record_submitted(carrier, some.to_vec()).await?;
        }
        Ok((answers.len(), proven.len() - answers.len()))
    }

    /// Returns the held messages that were sent according to the proofs.
    async fn proven(&self, since: Timestamp, proofs: &Proofs<'_>) -> Result<Vec<Proven>> {
        let mut proven = Vec::new();
        let code = self.country_code();
        self.each_held(since, async |shard, held| {
            proven.extend(held.into_iter().filter_map(|held| proofs.find(shard, held, code)));
            Ok(())
        })
        .await?;
        Ok(proven)
    }

    /// Calls `act` with all held messages, in chunks of a shard.
    async fn each_held(
        &self,
        since: Timestamp,
        mut act: impl AsyncFnMut(Shard, Vec<HeldMessage>) -> Result<()>,
    ) -> Result<()> {
        for shard in self.shards() {
            let mut after = Transid(0);
            loop {
                let mut conn = self.store().read_at(shard).await?;
                let held = hold::list(&mut conn, since, after, CHUNK).await?;
                drop(conn);
                let Some(last) = held.last() else { break };
                after = last.id;
                act(shard, held).await?;
            }
        }
        Ok(())
    }

    /// Takes the messages that this carrier got out of the queue.
    async fn take_out(
        &self,
        actor: &Actor,
        carrier: &str,
        source: &'static str,
        proven: &[Proven],
    ) -> Result<()> {
        let why = format!("{source} showed that it was sent before the backup was restored");
        for some in proven.chunk_by(|a, b| a.shard == b.shard) {
            for some in some.chunks(CHUNK_LEN) {
                let lost = some.iter().map(|one| (lease_of(&one.held, carrier), one.at));
                self.lose_some(actor, some[0].shard, lost.collect(), why.clone()).await?;
            }
        }
        Ok(())
    }

    /// Makes messages `unknown`, each with the time when a carrier may have got it. Leaves out
    /// messages that have left the queue.
    async fn lose_some(
        &self,
        actor: &Actor,
        shard: Shard,
        lost: Vec<(EndedLease, Timestamp)>,
        why: String,
    ) -> Result<()> {
        let (service, actor) = (self.0.clone(), *actor);
        self.in_transaction(work!(|tx, now| {
            tx.at(shard);
            let ids: Vec<Transid> = lost.iter().map(|(row, _)| row.id).collect();
            messages::lock(tx, &ids).await?;
            let gone = queue::drop_unclaimed(tx, &ids, true).await?;
            let mut lost: Vec<_> =
                lost.into_iter().filter(|(row, _)| gone.contains(&row.id)).collect();
            lost.sort_by_key(|(_, at)| *at);
            for of_time in lost.chunk_by(|a, b| a.1 == b.1) {
                let rows: Vec<EndedLease> = of_time.iter().map(|(row, _)| row.clone()).collect();
                let times = (now, of_time[0].1);
                service.delivery().perhaps_taken(tx, &rows, &why, times).await?;
            }
            let detail = format!("{} messages: {why}", lost.len());
            audit::insert(tx, now, &actor, "messages.unknown", SUBJECT, Some(&detail)).await
        }))
        .await
    }

    /// Cancels the messages that were due before this time, unless a carrier may have a segment.
    async fn discard(
        &self,
        actor: &Actor,
        since: Timestamp,
        before: Timestamp,
    ) -> Result<(usize, Money)> {
        let (mut discarded, mut released) = (0, Money::ZERO);
        self.each_held(since, async |shard, held| {
            let old = held.iter().filter(|held| held.due_at < before);
            let old: Vec<Transid> = old.map(|held| held.id).collect();
            if !old.is_empty() {
                let (count, money) = self.discard_some(actor, shard, old).await?;
                discarded += count;
                released =
                    released.checked_add(money).ok_or(Error::Failed(Fault::MoneyOverflow))?;
            }
            Ok(())
        })
        .await?;
        Ok((discarded, released))
    }

    async fn discard_some(
        &self,
        actor: &Actor,
        shard: Shard,
        ids: Vec<Transid>,
    ) -> Result<(usize, Money)> {
        let (service, actor) = (self.0.clone(), *actor);
        self.in_transaction(work!(|tx, now| {
            tx.at(shard);
            messages::lock(tx, &ids).await?;
            let gone = queue::drop_unclaimed(tx, &ids, false).await?;
            let ending = |id: &Transid| Ending {
                id: *id,
                status: MessageStatus::Cancelled,
                error: None,
                release: true,
                taken: false,
            };
            let endings: Vec<Ending> = gone.iter().map(ending).collect();
            let ended = messages::finish(tx, &endings, now).await?;
            settle(tx, &ended, now).await?;
            let mut released = Money::ZERO;
            let mut entries = Vec::new();
            for one in &ended {
                released = released
                    .checked_add(one.released)
                    .ok_or(Error::Failed(Fault::MoneyOverflow))?;
                entries.push(NewEntry {
                    id: one.id,
                    application_id: one.application_id,
                    status: MessageStatus::Cancelled,
                    detail: Some("discarded after a backup was restored".to_owned()),
                });
            }
            timeline::insert(tx, &entries, now, || service.next_id(now)).await?;
            let detail = format!("{} messages, {released} released", ended.len());
            audit::insert(tx, now, &actor, "messages.discard", SUBJECT, Some(&detail)).await?;
            Ok((ended.len(), released))
        }))
        .await
    }

    /// Makes all held messages `unknown`. Messages for the sandbox stay in the queue, because the
    /// sandbox delivers to nobody.
    async fn mark_unknown(&self, actor: &Actor, since: Timestamp) -> Result<usize> {
        const WHY: &str = "a backup was restored, and nobody knows whether it was sent before";
        let mut marked = 0;
        let network = self.inner.router.network();
        self.each_held(since, async |shard, held| {
            let mut unsure: Vec<_> = held
                .iter()
                .filter(|message| !network.is_sandbox(&message.carrier))
                .map(|message| (lease_of(message, &message.carrier), message.due_at))
                .collect();
            unsure.sort_by(|(a, _), (b, _)| a.carrier.cmp(&b.carrier));
            marked += unsure.len();
            self.lose_some(actor, shard, unsure, WHY.to_owned()).await
        })
        .await?;
        Ok(marked)
    }
}

fn lease_of(held: &HeldMessage, carrier: &str) -> EndedLease {
    EndedLease {
        id: held.id,
        application_id: held.application_id,
        carrier: carrier.to_owned(),
        submission: held.submission,
        segments: held.segments,
        lost_answer: LostAnswer::Hold,
    }
}
