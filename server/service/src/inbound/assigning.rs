//! Gives messages to the applications that have their numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::ids::{Shard, id_unix_ms};
use domain::opt_out::Command;
use domain::records::UnassignedRecord;
use domain::{ApplicationId, EventStream, InboundRecord, Keyword, Timestamp};

use super::Arrived;
use super::commands::Order;
use crate::Service;
use store::error::Result;
use store::inbound_numbers::{self, Owner};
use store::{WriteTx, inbound};

/// What became of messages.
#[derive(Default)]
pub(super) struct Assigned {
    /// The number of messages that applications got.
    pub(super) messages: usize,
    /// The number of replies that are in the queue.
    pub(super) replies: usize,
}

/// What a shard stores.
#[derive(Default)]
struct OfShard {
    messages: Vec<(ApplicationId, InboundRecord)>,
    orders: Vec<Order>,
}

/// The applications that get messages, by number and keyword.
struct Owners(HashMap<(String, String), ApplicationId>);

impl Owners {
    async fn of(tx: &mut WriteTx<'_>, messages: &[Arrived]) -> Result<Self> {
        let keywords = messages.iter().map(|it| Keyword::first_of(&it.text));
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
        let by_keyword = Keyword::first_of(&message.text)
            .and_then(|keyword| Some((owner(keyword.as_str())?, Some(keyword))));
        by_keyword.or_else(|| Some((owner("")?, None)))
    }
}

impl Service {
    /// Stores messages for the applications that have their numbers, with the events, and obeys
    /// their commands. Keeps the messages to numbers that nobody has. With `replies`, handsets get
    /// replies to their commands.
    pub(super) async fn assign_arrived(
        &self,
        tx: &mut WriteTx<'_>,
        messages: Vec<Arrived>,
        replies: bool,
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
                let meant = match owner.filter(|_| keyword.is_some()) {
                    Some(owner) => vec![owner],
                    None => self.applications_meant(tx, &message, command, owner).await?,
                };
                let replying = owner.filter(|owner| meant.contains(owner));
                let replying = replying.or(meant.first().copied()).filter(|_| replies);
                for application_id in meant {
                    let shard = self.shard_of_application(application_id).await?;
                    shards.entry(shard).or_default().orders.push(Order {
                        application_id,
                        command,
                        handset: message.number.clone(),
                        replies: replying == Some(application_id),
                    });
                }
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
        inbound::keep(tx, &unassigned).await?;
        for (shard, OfShard { messages, orders }) in shards {
            tx.at(shard);
            inbound::insert(tx, &messages).await?;
            for (application_id, message) in &messages {
                let stream = EventStream { application_id: *application_id, test: message.test };
                tx.tally.receive(stream, message.inboundid, now);
            }
            for order in &orders {
                assigned.replies += usize::from(self.obey(tx, order, now).await?);
            }
            tx.write_counts().await?;
        }
        Ok(assigned)
    }
}

fn record(message: Arrived, keyword: Option<Keyword>, optout: Option<Command>) -> InboundRecord {
    let Arrived { id, number, recipient, text, segments, carrier: _ } = message;
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
    let Arrived { id, carrier, number, recipient, text, segments } = message;
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
