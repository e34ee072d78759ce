//! Gives messages to the applications that have their numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use domain::ids::{Shard, id_unix_ms};
use domain::records::UnassignedRecord;
use domain::{
    ApplicationId, CommandWords, EventStream, InboundId, InboundRecord, Keyword, Timestamp,
};

use super::Arrived;
use crate::Service;
use store::error::Result;
use store::inbound_numbers::{self, Owner};
use store::{WriteTx, inbound};

static COMMANDS: LazyLock<CommandWords> = LazyLock::new(CommandWords::default);

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
    /// Stores messages for the applications that have their numbers, with the events. Keeps the
    /// messages to numbers that nobody has. Returns the IDs of the messages that applications got.
    pub(super) async fn assign_arrived(
        &self,
        tx: &mut WriteTx<'_>,
        messages: Vec<Arrived>,
        now: Timestamp,
    ) -> Result<Vec<InboundId>> {
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let owners = Owners::of(tx, &messages).await?;
        let mut shards: BTreeMap<Shard, Vec<(ApplicationId, InboundRecord)>> = BTreeMap::new();
        let (mut unassigned, mut assigned) = (Vec::new(), Vec::new());
        for message in messages {
            let Some((application_id, keyword)) = owners.find(&message) else {
                unassigned.push(kept(message));
                continue;
            };
            let shard = self.shard_of_application(application_id).await?;
            assigned.push(message.id);
            let messages = shards.entry(shard).or_default();
            messages.push((application_id, record(message, keyword)));
        }
        inbound::keep(tx, &unassigned).await?;
        for (shard, messages) in shards {
            tx.at(shard);
            inbound::insert(tx, &messages).await?;
            for (application_id, message) in &messages {
                let stream = EventStream { application_id: *application_id, test: message.test };
                tx.tally.receive(stream, message.inboundid, now);
            }
            tx.write_counts().await?;
        }
        Ok(assigned)
    }
}

fn record(message: Arrived, keyword: Option<Keyword>) -> InboundRecord {
    let Arrived { id, number, recipient, text, segments, carrier: _ } = message;
    let optout = match &keyword {
        Some(keyword) => COMMANDS.command_after(keyword, &text),
        None => COMMANDS.command(&text),
    };
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
