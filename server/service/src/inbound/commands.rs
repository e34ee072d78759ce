//! Obeys the commands about opt-outs that handsets send.

use domain::opt_out::Command;
use domain::{
    ApplicationId, ApplicationStatus, EventStream, Keyword, MessageText, Money, Number,
    OptOutSource, Timestamp, Transid, ids,
};

use super::Arrived;
use super::assigning::Assigned;
use crate::delivery::routing::Message;
use crate::reports::first_id;
use crate::wakeups::Wakeup;
use crate::{Service, opt_outs};
use store::applications::{self, SendingRow};
use store::error::Result;
use store::messages::{self, NewMessage};
use store::queue::{self, QueuedAs, QueuedRow};
use store::{WriteTx, inbound_numbers};

/// An application that hasn't sent to a handset for this long isn't meant by a command to a number
/// that it shares.
const SENT_WITHIN_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// A command for one application.
pub(super) struct Order {
    pub(super) application_id: ApplicationId,
    pub(super) command: Command,
    /// The handset's number as carriers write it.
    pub(super) handset: String,
    /// Whether the handset gets a reply.
    pub(super) replies: bool,
}

impl Service {
    /// Returns the command that a message is. A keyword may precede it.
    pub(super) fn command(&self, message: &Arrived, keyword: Option<&Keyword>) -> Option<Command> {
        let words = &self.inner.opt_outs.words;
        match keyword {
            Some(keyword) => words.command_after(keyword, &message.text),
            None => words.command(&message.text),
        }
    }

    /// Returns the applications that a command without a keyword is for. `default` gets the
    /// number's messages without keywords.
    pub(super) async fn applications_meant(
        &self,
        tx: &mut WriteTx<'_>,
        message: &Arrived,
        command: Command,
        default: Option<ApplicationId>,
    ) -> Result<Vec<ApplicationId>> {
        let (recipient, handset) = (&message.recipient, &message.number);
        let all = inbound_numbers::applications_of(tx, recipient).await?;
        if all.len() < 2 || command == Command::Start {
            return Ok(all);
        }
        let number = international(handset);
        let local = number.as_ref().and_then(|number| number.local_form(self.country_code()));
        let local = local.as_ref().map(Number::digits);
        let from = first_id(self.now().plus_ms(-SENT_WITHIN_MS));
        let mut meant = Vec::new();
        for application_id in all {
            tx.at(self.shard_of_application(application_id).await?);
            if messages::has_sent(tx, application_id, (local, handset), from).await? {
                meant.push(application_id);
            }
        }
        Ok(if meant.is_empty() { default.into_iter().collect() } else { meant })
    }

    /// Obeys a command in the caller's transaction. Returns whether it queued a reply.
    pub(super) async fn obey(
        &self,
        tx: &mut WriteTx<'_>,
        order: &Order,
        now: Timestamp,
    ) -> Result<bool> {
        // Nobody can send to an address that isn't a number, such as a name.
        let Some(number) = international(&order.handset) else {
            return Ok(false);
        };
        let list = EventStream { application_id: order.application_id, test: false };
        let numbers = std::slice::from_ref(&order.handset);
        match order.command {
            Command::Stop => {
                opt_outs::add(self, tx, list, numbers, OptOutSource::Reply, now).await?;
            }
            Command::Start => {
                opt_outs::remove(tx, list, numbers, OptOutSource::Reply, now).await?;
            }
            Command::Help => {}
        }
        match self.inner.opt_outs.reply(order.command).filter(|_| order.replies) {
            Some(text) => self.reply(tx, order.application_id, number, text, now).await,
            None => Ok(false),
        }
    }

    /// Wakes the connections to carriers if there are replies to submit.
    pub(super) fn wake_for(&self, assigned: &Assigned) {
        if assigned.replies > 0 {
            self.inner.wake(Wakeup::Queued);
        }
    }

    /// Queues a free message by the route of the application, at most once a day. Returns false if
    /// it queued none.
    async fn reply(
        &self,
        tx: &mut WriteTx<'_>,
        application_id: ApplicationId,
        number: Number,
        text: &MessageText,
        now: Timestamp,
    ) -> Result<bool> {
        let application = applications::sending(tx, application_id).await?;
        let SendingRow { reference, sender, status } = application;
        let number = number.local_form(self.country_code()).unwrap_or(number);
        let today = ids::id_of_day(now.day());
        if status != ApplicationStatus::Active
            || messages::has_replied(tx, application_id, &number, today, text).await?
        {
            return Ok(false);
        }
        let facts = Message {
            number: number.digits(),
            kind: number.kind(),
            sender: sender.as_deref(),
            application: reference,
        };
        let carrier = self.inner.router.carrier(&facts, self.entropy().number(), &[]);
        let message = NewMessage {
            id: Transid(self.next_id(now)),
            application_id,
            test: false,
            number,
            sender,
            body: text.clone(),
            requestid: None,
            pages: text.pages(),
            segments: text.segments(),
            unit_price: Money::ZERO,
            cost: Money::ZERO,
            sending_at: None,
        };
        let queued = QueuedRow {
            message_id: message.id,
            application_id,
            carrier,
            due_at: now.unix_ms(),
            lease_token: 0,
        };
        tx.tally.add_new((application_id, false), message.id, message.status(), message.cost);
        messages::insert(tx, &[&message]).await?;
        queue::insert(tx, &[queued], QueuedAs::default()).await?;
        Ok(true)
    }
}

/// Returns the number that a carrier wrote, if it is one.
fn international(address: &str) -> Option<Number> {
    Number::parse(&format!("+{address}")).ok()
}
