//! The messages to and from the number of a message.

use domain::Timestamp;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use {
    crate::problem::Problem,
    domain::records::MessageRecord,
    domain::timestamp::DAY_MS,
    domain::{KeyKind, Kind, Number, Reference},
    service::{InboundFilter, MessageFilter, Service},
};

use super::text::in_table;
use crate::ui::{Table, in_zone};

/// The number of messages that a thread shows of each direction.
#[cfg(feature = "ssr")]
const MESSAGES: i64 = 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadMessage {
    at: Timestamp,
    /// Whether the handset sent it.
    is_inbound: bool,
    text: String,
}

/// Returns the newest messages of an application to and from the number of a message, oldest first.
/// Returns none if the number sent nothing.
#[cfg(feature = "ssr")]
pub async fn thread(
    service: &Service,
    account_id: i64,
    reference: Reference,
    message: &MessageRecord,
) -> Result<Vec<ThreadMessage>, Problem> {
    let number = match message.kind {
        Kind::Local => Number::parse(&message.number),
        Kind::International => Number::parse(&format!("+{}", message.number)),
    };
    let Ok(number) = number else { return Ok(Vec::new()) };
    let key = Some(if message.test { KeyKind::Test } else { KeyKind::Live });
    let (limit, messages) = (MESSAGES, service.messages());
    // An old message is shown with its own conversation.
    let to = Some(message.created_at.plus_ms(DAY_MS));
    let number = Some(number);
    let inbound =
        InboundFilter { number: number.clone(), key, limit, to, ..InboundFilter::default() };
    let received = messages.account_inbound(account_id, reference, &inbound).await?.items;
    if received.is_empty() {
        return Ok(Vec::new());
    }
    let filter = MessageFilter { number, key, limit, to, ..MessageFilter::default() };
    let sent = messages.account_messages(account_id, Some(reference), &filter).await?.items;
    let received = received.into_iter().map(|message| ThreadMessage {
        at: message.received_at,
        is_inbound: true,
        text: message.message,
    });
    let sent = sent.into_iter().map(|message| ThreadMessage {
        at: message.created_at,
        is_inbound: false,
        text: message.message,
    });
    let mut thread: Vec<_> = received.chain(sent).collect();
    thread.sort_by_key(|message| message.at);
    Ok(thread)
}

/// Renders a thread, if there is one.
pub fn thread_section(thread: &[ThreadMessage]) -> Option<AnyView> {
    if thread.is_empty() {
        return None;
    }
    let table = Table::wide(thread)
        .compact()
        .time(in_zone("Time (UTC)"), |message| message.at)
        .column("Direction", |message| if message.is_inbound { "received" } else { "sent" })
        .styled("message", "Message", |message| {
            // A handset may have sent an empty message.
            (!message.is_inbound || !message.text.is_empty()).then(|| in_table(&message.text))
        })
        .in_region("Messages to and from this number");
    Some(
        view! {
            <h2 id="thread">"Conversation"</h2>
            <p class="fine">"The newest messages to and from this number, oldest first."</p>
            {table}
        }
        .into_any(),
    )
}
