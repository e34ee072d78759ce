//! Gives messages to the applications that have their numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::ids::{Shard, id_unix_ms};
use domain::inbound::MISSING_PARTS;
use domain::opt_out::Command;
use domain::records::UnassignedRecord;
use domain::{ApplicationId, EventStream, InboundRecord, Keyword, Timestamp};

use super::Arrived;
use super::commands::{Addressee, HandsetCommand};
use super::counts::Assigned;
use crate::Service;
use store::error::Result;
use store::inbound_numbers::{self, Owner};
use store::{Tx, inbound};

#[derive(Default)]
pub(super) struct OfShard {
    pub(super) messages: Vec<(ApplicationId, InboundRecord)>,
    pub(super) commands: Vec<HandsetCommand>,
}

/// Returns the first word of a message, unless the beginning is missing.
fn keyword_of(message: &Arrived) -> Option<Keyword> {
    let begins = !message.text.starts_with(MISSING_PARTS);
    begins.then(|| Keyword::first_of(&message.text)).flatten()
}

/// The applications that get messages, by number and keyword.
struct Owners(HashMap<(String, String), ApplicationId>);

impl Owners {
    async fn of(tx: &mut Tx<'_>, messages: &[Arrived]) -> Result<Self> {
        let keywords = messages.iter().map(keyword_of);
        let keywords: Vec<Option<Keyword>> = keywords.collect();
        let mut wanted = BTreeSet::new();
        for (message, keyword) in messages.iter().zip(&keywords) {
            wanted.insert((message.recipient.as_str(), ""));
            wanted.extend(keyword.as_ref().map(|it| (message.recipient.as_str(), it.as_str())));
        }
        let wanted: Vec<_> = wanted.into_iter().collect();
        let found = inbound_numbers::owners(tx, &wanted).await?;
        let by_key =
            |Owner { number, keyword, application_id }| ((number, keyword), application_id);
        Ok(Self(found.into_iter().map(by_key).collect()))
    }

    /// Returns the application that gets a message, and the keyword by which it does.
    fn find(&self, message: &Arrived) -> Option<(ApplicationId, Option<Keyword>)> {
        let owner =
            |keyword: &str| self.0.get(&(message.recipient.clone(), keyword.to_owned())).copied();
        let by_keyword =
            keyword_of(message).and_then(|keyword| Some((owner(keyword.as_str())?, Some(keyword))));
        by_keyword.or_else(|| Some((owner("")?, None)))
    }
}

impl Service {
    /// Stores messages for the applications that have their numbers, with the events, and executes
    /// their commands. Keeps the messages to numbers that nobody has. `is_late` is true if the
    /// messages were kept until now.
    pub(super) async fn assign(
        &self,
        tx: &mut Tx<'_>,
        messages: Vec<Arrived>,
        is_late: bool,
        now: Timestamp,
    ) -> Result<Assigned> {
        let mut assigned = Assigned::default();
        if messages.is_empty() {
            return Ok(assigned);
        }
        let owners = Owners::of(tx, &messages).await?;
        let mut shards: BTreeMap<Shard, OfShard> = BTreeMap::new();
        let mut unassigned = Vec::new();
        for message in messages {
            let (owner, keyword) = owners.find(&message).unzip();
            let keyword = keyword.flatten();
            let command = self.command(&message, keyword.as_ref());
            if let Some(command) = command {
                let addressee = Addressee { owner, by_keyword: keyword.is_some() };
                for one in self.commands_of(tx, &message, command, addressee, is_late).await? {
                    let shard = self.shard_of_application(one.list.application_id).await?;
                    shards.entry(shard).or_default().commands.push(one);
                }
            }
            if message.is_repeated {
                continue;
            }
            let Some(owner) = owner else {
                unassigned.push(kept(message));
                continue;
            };
            assigned.messages += 1;
            let shard = self.shard_of_application(owner).await?;
            let of_shard = shards.entry(shard).or_default();
            of_shard.messages.push((owner, record(message, keyword, command)));
        }
        assigned.unassigned = unassigned.len();
        inbound::keep(tx, &unassigned).await?;
        for (shard, of_shard) in shards {
            tx.at(shard);
            assigned.replies += self.store_at_shard(tx, of_shard, now).await?;
        }
        Ok(assigned)
    }

    /// Stores what a shard gets. Returns the number of replies in the queue.
    pub(super) async fn store_at_shard(
        &self,
        tx: &mut Tx<'_>,
        OfShard { messages, mut commands }: OfShard,
        now: Timestamp,
    ) -> Result<usize> {
        inbound::insert(tx, &messages).await?;
        for (application_id, message) in &messages {
            let stream = EventStream { application_id: *application_id, test: message.test };
            tx.tally.receive(stream, message.inboundid, now);
        }
        // All transactions lock the rows of numbers in this order. The sort is stable, so the
        // commands of a handset stay in their order.
        commands.sort_by(|a, b| (a.list, &a.handset).cmp(&(b.list, &b.handset)));
        let mut replies = 0;
        for command in commands {
            replies += usize::from(self.execute(tx, command, now).await?);
        }
        tx.write_counts().await?;
        Ok(replies)
    }
}

pub(super) fn record(
    message: Arrived,
    keyword: Option<Keyword>,
    optout: Option<Command>,
) -> InboundRecord {
    let Arrived { id, number, recipient, text, segments, .. } = message;
    InboundRecord {
        inboundid: id,
        number,
        recipient,
        message: text,
        segments,
        keyword: keyword.map(String::from),
        optout,
        test: false,
        received_at: Timestamp::from_unix_ms(id_unix_ms(id.0)),
    }
}

fn kept(message: Arrived) -> UnassignedRecord {
    let Arrived { id, carrier, number, recipient, text, segments, .. } = message;
    UnassignedRecord {
        inboundid: id,
        carrier,
        number,
        recipient,
        message: text,
        segments,
        received_at: Timestamp::from_unix_ms(id_unix_ms(id.0)),
    }
}
