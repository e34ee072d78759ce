//! Messages on the support pages: with their segments, but without the text unless staff request
//! it.

use domain::Transid;
use domain::ids::Shard;
use domain::records::MessageDetail;
use domain::support::MessageFile;

use crate::Support;
use crate::reports;
use crate::transactions::work;
use store::audit::{self, Actor};
use store::error::{Refusal, Result};
use store::recent::MessageLocation;
use store::{applications, messages, segments};

impl Support<'_> {
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
        let text = std::mem::take(&mut record.message);
        Ok(Some(MessageFile {
            owner: applications::owner(&mut conn, location.application_id).await?,
            chars: text.chars().count(),
            record,
            carrier,
            timeline,
            charge,
            segments: segments::of_message(&mut conn, transid).await?,
        }))
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
            let (action, subject) = ("message.text", transid.to_string());
            audit::insert(tx, now, &actor, action, &subject, None).await?;
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
