//! The numbers of applications, and the messages to numbers that nobody had.

use domain::records::{InboundNumberRecord, Paged, UnassignedRecord};
use domain::{InboundId, Keyword, Number, Reference};

use super::Arrived;
use crate::Support;
use crate::transactions::work;
use store::audit::{self, Actor};
use store::error::{Refusal, Result};
use store::{Tx, applications, inbound, inbound_numbers};

/// The maximum number of numbers on a list.
const NUMBERS_MAX: i64 = 10_000;
/// The number of messages that one transaction assigns.
const CHUNK: i64 = 500;

impl Support<'_> {
    /// Returns the numbers that handsets send messages to.
    pub async fn inbound_numbers(&self) -> Result<Vec<InboundNumberRecord>> {
        let mut conn = self.store().read().await?;
        inbound_numbers::all(&mut conn, NUMBERS_MAX).await
    }

    /// Checks whether [`Self::add_inbound_number`] would be refused. Returns the number with its
    /// country code.
    ///
    /// # Errors
    /// `NoSuchApplication`, `InboundNumberTaken`, `KeywordIsCommand`.
    pub async fn check_inbound_number(
        &self,
        number: &Number,
        keyword: Option<&Keyword>,
        reference: Reference,
    ) -> Result<String> {
        self.refuse_command(keyword)?;
        let found = self.0.applications().find_application(reference).await?;
        found.ok_or(Refusal::NoSuchApplication)?;
        let number = self.written(number);
        let is_taken = |one: &InboundNumberRecord| {
            one.number == number && one.keyword.as_ref() == keyword && one.reference != reference
        };
        if self.inbound_numbers().await?.iter().any(is_taken) {
            return Err(Refusal::InboundNumberTaken.into());
        }
        Ok(number)
    }

    fn refuse_command(&self, keyword: Option<&Keyword>) -> Result<()> {
        let words = &self.inner.opt_outs.words;
        if keyword.is_some_and(|keyword| words.command(keyword.as_str()).is_some()) {
            return Err(Refusal::KeywordIsCommand.into());
        }
        Ok(())
    }

    /// Gives a number's messages with a keyword, or those without, to an application.
    ///
    /// # Errors
    /// `NoSuchApplication`, `InboundNumberTaken`, `KeywordIsCommand`.
    pub async fn add_inbound_number(
        &self,
        actor: &Actor,
        number: &Number,
        keyword: Option<Keyword>,
        reference: Reference,
    ) -> Result<()> {
        self.refuse_command(keyword.as_ref())?;
        let (actor, number) = (*actor, self.written(number));
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = applications::by_reference(tx, reference).await?;
                let id = row.ok_or(Refusal::NoSuchApplication)?.id;
                if !inbound_numbers::add(tx, &number, keyword.as_ref(), id, now).await? {
                    return Err(Refusal::InboundNumberTaken.into());
                }
                let (subject, detail) = (reference.to_string(), named(&number, keyword.as_ref()));
                audit::insert(tx, now, &actor, "number.add", &subject, Some(&detail)).await
            }),
        )
        .await
    }

    /// Takes a number's messages with a keyword, or those without, from its application.
    ///
    /// # Errors
    /// `NoSuchInboundNumber`.
    pub async fn remove_inbound_number(
        &self,
        actor: &Actor,
        number: &Number,
        keyword: Option<Keyword>,
    ) -> Result<()> {
        let (actor, number) = (*actor, self.written(number));
        self.in_transaction(work!(|tx, now| {
            if !inbound_numbers::remove(tx, &number, keyword.as_ref()).await? {
                return Err(Refusal::NoSuchInboundNumber.into());
            }
            let subject = named(&number, keyword.as_ref());
            audit::insert(tx, now, &actor, "number.remove", &subject, None).await
        }))
        .await
    }

    /// Returns a page of the messages to numbers that no application had, newest first.
    ///
    /// # Errors
    /// `InvalidCursor`.
    pub async fn unassigned_inbound(
        &self,
        cursor: Option<&str>,
        limit: i64,
    ) -> Result<Paged<UnassignedRecord>> {
        let below = match cursor {
            Some(cursor) => InboundId::parse(cursor).ok_or(Refusal::InvalidCursor)?.0,
            None => i64::MAX,
        };
        let mut conn = self.store().read().await?;
        let found = inbound::unassigned_below(&mut conn, below, limit + 1).await?;
        Ok(Paged::of(found, limit, |message| message.inboundid.to_string()))
    }

    /// Gives the kept messages to a number to the applications that have it now. Returns how many
    /// messages applications got.
    ///
    /// # Errors
    /// `NoSuchInboundNumber` if no application gets any of them.
    pub async fn assign_inbound(&self, actor: &Actor, recipient: &str) -> Result<u64> {
        let (mut count, mut above) = (0, Some(0));
        while let Some(after) = above {
            let (service, actor) = (self.0.clone(), *actor);
            let recipient = recipient.to_owned();
            let (assigned, last) = self
                .in_transaction(work!(|tx, now| {
                    let kept = inbound::unassigned_to(tx, &recipient, after, CHUNK).await?;
                    let last = kept.last().map(|message| message.inboundid.0);
                    let all: Vec<InboundId> =
                        kept.iter().map(|message| message.inboundid).collect();
                    inbound::drop_unassigned(tx, &all).await?;
                    let arrived = kept.into_iter().map(Arrived::from).collect();
                    let assigned = service.assign(tx, arrived, true, now).await?;
                    let assigned = assigned.messages;
                    if assigned > 0 {
                        note(tx, now, &actor, &recipient, assigned).await?;
                    }
                    Ok((assigned as u64, last))
                }))
                .await?;
            count += assigned;
            above = last;
        }
        if count == 0 {
            return Err(Refusal::NoSuchInboundNumber.into());
        }
        Ok(count)
    }

    fn written(&self, number: &Number) -> String {
        number.for_carrier(&self.inner.router.country_code)
    }
}

async fn note(
    tx: &mut Tx<'_>,
    now: domain::Timestamp,
    actor: &Actor,
    recipient: &str,
    assigned: usize,
) -> Result<()> {
    let detail = format!("{assigned} messages");
    audit::insert(tx, now, actor, "inbound.assign", recipient, Some(&detail)).await
}

/// Returns a number and its keyword for the audit log.
fn named(number: &str, keyword: Option<&Keyword>) -> String {
    keyword.map_or_else(|| number.to_owned(), |keyword| format!("{number} {keyword}"))
}

impl From<UnassignedRecord> for Arrived {
    fn from(message: UnassignedRecord) -> Self {
        Self {
            id: message.inboundid,
            carrier: message.carrier,
            number: message.number,
            recipient: message.recipient,
            text: message.message,
            segments: message.segments,
            is_whole: true,
            is_repeated: false,
        }
    }
}
