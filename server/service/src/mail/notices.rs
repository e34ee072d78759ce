//! Mails that no user action causes: about a low balance, a finished batch and, for staff, work
//! that has waited for an hour. Jobs check for these periodically, so that sends don't have to.

use domain::decision::Work;
use domain::ids::{self, Shard};
use domain::records::{CarrierRecord, CarrierState, MailGap};
use domain::schedule::DAYS_AHEAD_MAX;
use domain::{MailKind, Timestamp};

use super::{Recipient, put, texts};
use crate::Operations;
use crate::application_events::Cause;
use crate::transactions::work;
use store::Chore;
use store::error::Result;
use store::gate::Priority;
use store::notices::{self, Owner, Waiting};
use store::query::Conn;
use store::{Tx, accounts, installation};

const HOUR_MS: i64 = 60 * 60 * 1000;
/// How long a carrier must be in a state before staff are mailed about it. Short outages are
/// frequent, and a carrier may come and go.
const CARRIER_HOLDS_MS: i64 = 2 * 60 * 1000;
/// The maximum age of a batch that is checked. A batch is done within 48 hours and some minutes of
/// its scheduled time, but its mail may be late if no process was running.
const BATCH_AGE_MS: i64 = (DAYS_AHEAD_MAX + 4) * 24 * HOUR_MS;

impl<'a> From<&'a Owner> for Recipient<'a> {
    fn from(owner: &'a Owner) -> Self {
        let application_name = owner.name.as_deref();
        Self { account_id: owner.account_id, email: &owner.email, application_name }
    }
}

impl Operations<'_> {
    /// Stores the mails about low balances and finished batches. A balance causes one mail each
    /// time that it falls below the threshold.
    pub async fn mail_notices(&self) -> Result<()> {
        let noting = |shard| self.mail_notices_of(shard);
        self.in_each_shard(noting).await.map(drop)
    }

    async fn mail_notices_of(&self, shard: Shard) -> Result<()> {
        // Read first, because usually there is nothing to write.
        {
            let mut conn = self.store().read_at(shard).await?;
            if notices::low(&mut conn).await?.is_empty()
                && notices::risen(&mut conn).await?.is_empty()
                && notices::done(&mut conn, least_batch(self.now())).await?.is_empty()
            {
                return Ok(());
            }
        }
        self.do_chore_at(
            shard,
            Chore::MailNotices,
            Priority::Bulk,
            work!(|tx, now| {
                note_balances(tx, now).await?;
                note_batches(tx, now).await?;
                Ok(false)
            }),
        )
        .await
    }

    /// Mails staff about work that has waited for an hour. Each kind of work causes at most one
    /// mail per hour, and only if more work has reached that age since the last mail.
    pub async fn remind_staff(&self) -> Result<()> {
        for work in Work::ALL {
            let now = self.now();
            let last = notices::reminded(&mut self.store().read().await?, work).await?;
            let last = last.unwrap_or(Timestamp::from_unix_ms(0));
            if now.ms_since(last) < HOUR_MS {
                continue;
            }
            let waiting = self.waiting(work, now.plus_ms(-HOUR_MS), last.plus_ms(-HOUR_MS));
            let waiting = waiting.await?;
            if waiting.fresh > 0 {
                self.remind(work, waiting.count).await?;
            }
        }
        Ok(())
    }

    /// Mails staff about carriers that have been down or degraded for some minutes, and about those
    /// that are back for as long.
    pub async fn mail_carrier_states(&self) -> Result<()> {
        let known = notices::failing_carriers(&mut self.store().read().await?).await?;
        let now = self.now();
        let carriers = self.0.delivery().carriers().await?;
        for carrier in &known {
            // A carrier that isn't in the settings any more will never be back.
            if !carriers.iter().any(|record| record.name == *carrier) {
                let carrier = carrier.clone();
                let forgetting = self.in_transaction(work!(|tx, _now| {
                    notices::forget_carrier(tx, &carrier).await
                }));
                forgetting.await?;
            }
        }
        for carrier in carriers {
            let holds = carrier.since.is_some_and(|since| now.ms_since(since) >= CARRIER_HOLDS_MS);
            let fails = match carrier.state {
                CarrierState::Down | CarrierState::Degraded => true,
                CarrierState::Up => false,
                CarrierState::Drained => continue,
            };
            if holds && fails != known.contains(&carrier.name) {
                self.mail_carrier_state(carrier, fails).await?;
            }
        }
        Ok(())
    }

    /// Returns why no mail about a carrier that fails would leave.
    pub async fn carrier_mail_gap(&self) -> Result<Option<MailGap>> {
        if !self.sends_mail() {
            return Ok(Some(MailGap::NoServer));
        }
        let mut conn = self.store().read().await?;
        for member in accounts::staff(&mut conn).await? {
            let (unwanted, confirmed) = accounts::mail_wishes(&mut conn, member.id).await?;
            if confirmed && !unwanted.contains(&MailKind::Carrier) {
                return Ok(None);
            }
        }
        Ok(Some(MailGap::NoRecipient))
    }

    async fn mail_carrier_state(&self, carrier: CarrierRecord, fails: bool) -> Result<()> {
        self.in_transaction(work!(|tx, now| {
            let (is_new, mail) = if fails {
                let is_new = notices::note_carrier(tx, &carrier.name, now).await?;
                (is_new, texts::carrier_fails(&carrier))
            } else {
                let is_new = notices::forget_carrier(tx, &carrier.name).await?;
                (is_new, texts::carrier_is_back(&carrier))
            };
            if is_new {
                for member in accounts::staff(tx).await? {
                    put(tx, &member, &mail, now).await?;
                }
            }
            Ok(())
        }))
        .await
    }

    /// Returns how much work has waited since `before` or longer, and how much of it arrived after
    /// `after`.
    pub(crate) async fn waiting(
        &self,
        work: Work,
        before: Timestamp,
        after: Timestamp,
    ) -> Result<Waiting> {
        if !notices::is_of_shards(work) {
            return notices::waiting(&mut self.store().read().await?, work, before, after).await;
        }
        let counted = self.in_each_shard(|shard| async move {
            notices::waiting(&mut self.store().read_at(shard).await?, work, before, after).await
        });
        let none = Waiting::default();
        Ok(counted.await?.into_iter().fold(none, Waiting::and))
    }

    async fn remind(&self, work: Work, waiting: i64) -> Result<()> {
        self.in_transaction(work!(|tx, now| {
            if !notices::remind(tx, work, now, now.plus_ms(-HOUR_MS)).await? {
                return Ok(());
            }
            let mail = texts::waiting(work, waiting);
            for member in accounts::staff(tx).await? {
                put(tx, &member, &mail, now).await?;
            }
            Ok(())
        }))
        .await
    }
}

/// Returns the lowest ID of the batches that are checked.
fn least_batch(now: Timestamp) -> i64 {
    ids::compose_id(now.plus_ms(-BATCH_AGE_MS).unix_ms(), 0)
}

async fn note_balances(conn: &mut Tx<'_>, now: Timestamp) -> Result<()> {
    for id in notices::risen(conn).await? {
        notices::note_risen(conn, id).await?;
    }
    let currency = installation::currency(conn).await?;
    for low in notices::low(conn).await? {
        if notices::note_low(conn, low.id, now).await? {
            let mail =
                texts::low_balance(low.owner.reference, low.balance, low.threshold, &currency);
            put(conn, &low.owner, &mail, now).await?;
            let (balance, threshold) = (low.balance, low.threshold);
            let cause = Cause::BalanceLow { balance, threshold, currency: &currency };
            cause.put(conn, low.id, now);
        }
    }
    Ok(())
}

async fn note_batches(conn: Conn<'_>, now: Timestamp) -> Result<()> {
    for done in notices::done(conn, least_batch(now)).await? {
        if notices::note_done(conn, done.id, now).await? {
            let mail = texts::batch_done(&done);
            put(conn, &done.owner, &mail, now).await?;
        }
    }
    Ok(())
}
