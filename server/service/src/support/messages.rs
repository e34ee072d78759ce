//! Messages on the support pages: with their segments, but without the text unless staff request
//! it.

use domain::ids::Shard;
use domain::records::{CarrierState, MessageDetail};
use domain::support::{MaskedMessage, MessageFile, Owner};
use domain::{Timestamp, Transid};

use crate::Support;
use crate::delivery::expiry::least_queued;
use crate::reports;
use crate::transactions::work;
use store::audit::{self, Actor};
use store::error::{Refusal, Result};
use store::recent::{self, MessageLocation};
use store::{applications, messages, queue, segments};

/// The maximum number of messages in the list of those whose outcome is unknown.
const UNKNOWN_MAX: i64 = 500;

/// A message whose outcome is unknown, for staff.
pub struct UnknownMessage {
    pub owner: Owner,
    /// The carrier that may have the message.
    pub carrier: Option<String>,
    pub message: MaskedMessage,
}

impl Support<'_> {
    /// Returns the newest 500 messages whose outcome is unknown, newest first. With a carrier, only
    /// those that it may have.
    pub async fn unknown_messages(&self, carrier: Option<&str>) -> Result<Vec<UnknownMessage>> {
        let from = least_queued(self.now());
        let mut found = Vec::new();
        for shard in self.shards() {
            let mut conn = self.store().read_at(shard).await?;
            for location in recent::unknown(&mut conn, carrier, from, UNKNOWN_MAX).await? {
                let Some(row) = reports::row_at(&mut conn, location).await? else { continue };
                let owner = applications::owner(&mut conn, location.application_id).await?;
                let (carrier, message) = (row.carrier, row.record.into());
                found.push(UnknownMessage { owner, carrier, message });
            }
        }
        found.sort_unstable_by_key(|found| std::cmp::Reverse(found.message.transid));
        found.truncate(usize::try_from(UNKNOWN_MAX).unwrap_or(usize::MAX));
        Ok(found)
    }

    /// Returns any message, for staff, with an empty text. `None` if there is no message with this
    /// ID.
    pub async fn message_file(&self, transid: Transid) -> Result<Option<MessageFile>> {
        let Some((shard, location)) = self.locate(transid).await? else {
            return Ok(None);
        };
        let mut conn = self.store().read_at(shard).await?;
        let Some(found) = reports::row_at(&mut conn, location).await? else {
            return Ok(None);
        };
        let carrier = found.carrier.clone();
        let MessageDetail { mut record, timeline, charge } =
            self.messages().detail_of(&mut conn, found).await?;
        let waits_for = queue::carrier_of(&mut conn, transid).await?;
        let text = std::mem::take(&mut record.message);
        let mut file = MessageFile {
            owner: applications::owner(&mut conn, location.application_id).await?,
            chars: text.chars().count(),
            record,
            carrier,
            waits_for: None,
            timeline,
            charge,
            segments: segments::of_message(&mut conn, transid).await?,
        };
        drop(conn);
        let is_early = file.record.send_at.filter(|at| *at > self.now());
        file.waits_for = match (waits_for, is_early) {
            (None, _) => None,
            (Some(_), Some(at)) => Some(format!("its time, {} UTC", at.to_table())),
            (Some((name, due_at)), None) => Some(self.cause_of_wait(&name, due_at).await?),
        };
        Ok(Some(file))
    }

    /// Returns the carrier that a message waits for, with the reason.
    async fn cause_of_wait(&self, name: &str, due_at: Option<Timestamp>) -> Result<String> {
        let carriers = self.delivery().carriers().await?;
        let Some(carrier) = carriers.into_iter().find(|carrier| carrier.name == name) else {
            return Ok("a carrier: no route leads to one that is in the settings".to_owned());
        };
        let state = carrier.state.as_str();
        Ok(match (carrier.state, carrier.reason) {
            (CarrierState::Up, _) => match due_at {
                None => format!("{name}: it is being submitted"),
                Some(at) if at > self.now() => {
                    format!("{name}, which is up: it is submitted at {} UTC", at.to_table())
                }
                Some(_) => format!("{name}, which is up: it is submitted next"),
            },
            (_, Some(reason)) => format!("{name}, which is {state}: {reason}"),
            (_, None) => format!("{name}, which is {state}"),
        })
    }

    /// Returns the text of any message, for staff. The audit log records who read it.
    ///
    /// # Errors
    /// `NoSuchMessage`.
    pub async fn show_text(&self, actor: &Actor, transid: Transid) -> Result<String> {
        let found = self.locate(transid).await?;
        let (shard, location) = found.ok_or(Refusal::NoSuchMessage)?;
        let actor = *actor;
        self.in_transaction(work!(|tx, now| {
            tx.at(shard);
            let found = reports::row_at(tx, location).await?;
            let text = found.ok_or(Refusal::NoSuchMessage)?.record.message;
            let owner = applications::owner(tx, location.application_id).await?;
            let subject = (owner.reference, &*transid.to_string());
            audit::insert_of(tx, now, &actor, "message.text", subject, None).await?;
            Ok(text)
        }))
        .await
    }

    /// Returns the shard of a message, and where the message is in that shard.
    pub(super) async fn locate(
        &self,
        transid: Transid,
    ) -> Result<Option<(Shard, MessageLocation)>> {
        let found = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            let location = messages::locate(&mut conn, transid).await?;
            Ok(location.map(|location| (shard, location)))
        });
        Ok(found.await?.into_iter().flatten().next())
    }
}
