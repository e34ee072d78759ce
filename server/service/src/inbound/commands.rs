//! Executes the commands about opt-outs that handsets send.

use std::collections::BTreeMap;

use domain::ids::Shard;
use domain::opt_out::Command;
use domain::{
    ApplicationId, ApplicationStatus, EventStream, Keyword, MessageText, Money, Number,
    OptOutSource, Timestamp, Transid, ids,
};

use super::Arrived;
use crate::delivery::routing::Message;
use crate::reports::first_id;
use crate::{SANDBOX_CARRIER, Service, opt_outs};
use store::applications::{self, SendingRow};
use store::error::Result;
use store::messages::{self, NewMessage, Recipient};
use store::queue::{self, QueuedAs, QueuedRow};
use store::{Tx, inbound_numbers};

/// A STOP or HELP to a shared number counts only for the applications that have sent to the handset
/// within this time. If there are none, it counts for the application that gets the number's
/// messages.
const SENT_WITHIN_MS: i64 = 30 * 24 * 60 * 60 * 1000;

pub(super) struct HandsetCommand {
    /// The application, and whether its test key delivered the command.
    pub(super) list: EventStream,
    command: Command,
    /// The handset's number as carriers write it.
    pub(super) handset: String,
    /// The free message that the handset gets.
    reply: Option<Reply>,
}

struct Reply {
    text: MessageText,
    sending: SendingRow,
}

/// The application that gets a message.
#[derive(Clone, Copy)]
pub(super) struct Addressee {
    /// `None` if nobody gets it.
    pub(super) owner: Option<ApplicationId>,
    /// Whether a keyword decided this.
    pub(super) by_keyword: bool,
}

impl Service {
    /// Returns the command in a message, if the message has only a command, or a keyword and a
    /// command.
    pub(super) fn command(&self, message: &Arrived, keyword: Option<&Keyword>) -> Option<Command> {
        let words = &self.inner.opt_outs.words;
        match keyword {
            _ if !message.is_whole => None,
            Some(keyword) => words.command_after(keyword, &message.text),
            None => words.command(&message.text),
        }
    }

    /// Returns the command of a message for each application that it is for. A message that arrived
    /// long ago or repeatedly can only add opt-outs, because a START may have been undone since.
    pub(super) async fn commands_of(
        &self,
        tx: &mut Tx<'_>,
        message: &Arrived,
        command: Command,
        addressee: Addressee,
        is_late: bool,
    ) -> Result<Vec<HandsetCommand>> {
        if (is_late || message.is_repeated) && command != Command::Stop {
            return Ok(Vec::new());
        }
        let Addressee { owner, by_keyword } = addressee;
        let applications = if is_late || by_keyword {
            owner.into_iter().collect()
        } else {
            self.applications_of_command(tx, message, command, owner).await?
        };
        let text = self.inner.opt_outs.reply(command, &message.recipient);
        let mut replying = match text.filter(|_| !is_late) {
            Some(text) => self.replying(tx, &applications, owner, text).await?,
            None => None,
        };
        let commands = applications.into_iter().map(|application_id| HandsetCommand {
            list: EventStream { application_id, test: false },
            command,
            handset: message.number.clone(),
            reply: replying.take_if(|(id, _)| *id == application_id).map(|(_, reply)| reply),
        });
        Ok(commands.collect())
    }

    /// Returns the applications that a command without a keyword is for. `default` gets the
    /// number's messages without keywords.
    async fn applications_of_command(
        &self,
        tx: &mut Tx<'_>,
        message: &Arrived,
        command: Command,
        default: Option<ApplicationId>,
    ) -> Result<Vec<ApplicationId>> {
        let all = inbound_numbers::applications_of(tx, &message.recipient).await?;
        let Some(number) = international(&message.number) else {
            return Ok(Vec::new());
        };
        if all.len() < 2 || command == Command::Start {
            return Ok(all);
        }
        let mut shards: BTreeMap<Shard, Vec<ApplicationId>> = BTreeMap::new();
        for id in all {
            shards.entry(self.shard_of_application(id).await?).or_default().push(id);
        }
        let local = number.local_form(self.country_code());
        let recipient = Recipient {
            local: local.as_ref().map_or("", Number::digits),
            international: number.digits(),
        };
        let from = first_id(self.now().plus_ms(-SENT_WITHIN_MS));
        let mut senders = Vec::new();
        for (shard, ids) in shards {
            tx.at(shard);
            senders.extend(messages::senders(tx, &ids, recipient, from).await?);
        }
        Ok(if senders.is_empty() { default.into_iter().collect() } else { senders })
    }

    /// Returns the application that replies, with its reply. This is the owner of the number if it
    /// is Active, or else the first other application that is.
    async fn replying(
        &self,
        tx: &mut Tx<'_>,
        applications: &[ApplicationId],
        owner: Option<ApplicationId>,
        text: MessageText,
    ) -> Result<Option<(ApplicationId, Reply)>> {
        let first = owner.filter(|owner| applications.contains(owner));
        let others = applications.iter().copied().filter(|id| Some(*id) != first);
        for id in first.into_iter().chain(others) {
            tx.at(self.shard_of_application(id).await?);
            let sending = applications::sending(tx, id).await?;
            if sending.status == ApplicationStatus::Active {
                return Ok(Some((id, Reply { text, sending })));
            }
        }
        Ok(None)
    }

    /// Returns the command of a test message, which is for the application of its key alone.
    pub(super) async fn command_of_test(
        &self,
        tx: &mut Tx<'_>,
        message: &Arrived,
        command: Command,
        list: EventStream,
    ) -> Result<HandsetCommand> {
        let sending = applications::sending(tx, list.application_id).await?;
        let text = self.inner.opt_outs.reply(command, &message.recipient);
        let reply = text
            .filter(|_| sending.status != ApplicationStatus::Suspended)
            .map(|text| Reply { text, sending });
        Ok(HandsetCommand { list, command, handset: message.number.clone(), reply })
    }

    /// Executes a command in the caller's transaction. Returns whether it queued a reply.
    pub(super) async fn execute(
        &self,
        tx: &mut Tx<'_>,
        command: HandsetCommand,
        now: Timestamp,
    ) -> Result<bool> {
        let HandsetCommand { list, command, handset, reply } = command;
        // Nobody can send to an address that isn't a number, such as a name.
        let Some(number) = international(&handset) else {
            return Ok(false);
        };
        let numbers = [handset];
        match command {
            Command::Stop => {
                opt_outs::add(self, tx, list, &numbers, OptOutSource::Reply, now).await?;
            }
            Command::Start => {
                opt_outs::remove(self, tx, list, &numbers, OptOutSource::Reply, now).await?;
            }
            Command::Help => {}
        }
        match reply {
            Some(reply) => self.queue_reply(tx, list, number, reply, now).await,
            None => Ok(false),
        }
    }

    /// Queues a free message, at most once a day: by the route of the application, or to the
    /// sandbox if the command is a test. Returns false if it queued none.
    async fn queue_reply(
        &self,
        tx: &mut Tx<'_>,
        EventStream { application_id, test }: EventStream,
        number: Number,
        reply: Reply,
        now: Timestamp,
    ) -> Result<bool> {
        let Reply { text, sending: SendingRow { reference, sender, .. } } = reply;
        let number = number.local_form(self.country_code()).unwrap_or(number);
        messages::lock_replies(tx, application_id, &number).await?;
        let today = ids::id_of_day(now.day());
        if messages::has_replied(tx, (application_id, test), &number, today, &text).await? {
            return Ok(false);
        }
        let carrier = if test {
            SANDBOX_CARRIER.to_owned()
        } else {
            let facts = Message {
                number: number.digits(),
                kind: number.kind(),
                sender: sender.as_deref(),
                application: Some(reference),
                segments: text.segments(),
            };
            self.inner.router.carrier(&facts, self.entropy().number(), &[])
        };
        let message = NewMessage {
            id: Transid(self.next_id(now)),
            application_id,
            test,
            number,
            sender,
            pages: text.pages(),
            segments: text.segments(),
            body: text,
            verification: None,
            requestid: None,
            unit_price: Money::ZERO,
            cost: Money::ZERO,
            send_at: None,
            sending_at: None,
        };
        let queued = QueuedRow {
            message_id: message.id,
            application_id,
            carrier,
            due_at: now.unix_ms(),
            lease_token: 0,
            expires_at: None,
        };
        tx.tally.add_new((application_id, test), message.id, message.status(), message.cost);
        messages::insert(tx, &[&message]).await?;
        queue::insert(tx, &[queued], QueuedAs::default()).await?;
        Ok(true)
    }
}

/// Returns the number that a carrier wrote, if it is one.
fn international(address: &str) -> Option<Number> {
    Number::parse(&format!("+{address}")).ok()
}
