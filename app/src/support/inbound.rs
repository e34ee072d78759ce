//! `/support/inbound`: the messages to numbers that no application had.

use domain::records::{Paged, UnassignedRecord};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::desk::row_form;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{BUTTONS, FormAlert, FormState, Loaded, Page, Table, next_link, parameter};
#[cfg(feature = "ssr")]
use {crate::portal_request::staff, service::Actor};

/// The number of messages on a page.
#[cfg(feature = "ssr")]
const MESSAGES: i64 = 50;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnassignedView {
    messages: Paged<UnassignedRecord>,
}

/// Loads messages to numbers that no application had.
#[server(prefix = "/fn", endpoint = "support-inbound", input = GetUrl)]
pub async fn load_support_inbound(
    #[server(default)] cursor: Option<String>,
) -> Result<UnassignedView, Problem> {
    let (current, _) = staff().await?;
    let support = current.service().support();
    let messages = support.unassigned_inbound(cursor.as_deref(), MESSAGES).await?;
    Ok(UnassignedView { messages })
}

/// Assigns the messages to a number to the applications that have the number now.
#[server(prefix = "/fn", endpoint = "assign-inbound")]
pub async fn assign_inbound(recipient: String) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let actor = Actor::Account(account.id);
    Ok(current.service().support().assign_inbound(&actor, &recipient).await.map(drop)?)
}

#[component]
pub fn UnassignedPage() -> impl IntoView {
    let form = FormState::new::<AssignInbound>("assign-inbound-alert");
    let cursor = parameter("cursor");
    let data = PageData::after([form], move || LoadSupportInbound { cursor: cursor.get() });
    view! { <Loaded data render=move |data| view! { <Unassigned data form/> }/> }
}

#[component]
fn Unassigned(data: UnassignedView, form: FormState) -> impl IntoView {
    let Paged { items, next } = data.messages;
    view! {
        <Page title="Unassigned messages">
            <p class="lead">
                "No application had the number of these messages when they arrived. To assign \
                 them, add the number under " <a href="/support/numbers">"Numbers"</a>
                ". Then click Assign: the application gets all messages to this number."
            </p>
            <FormAlert form/>
            {listed(&items, form)}
            {next_link("/support/inbound", next, "Older messages")}
        </Page>
    }
}

fn listed(messages: &[UnassignedRecord], form: FormState) -> AnyView {
    Table::wide(messages)
        .time("Received (UTC)", |message| message.received_at)
        .styled("figures", "From", |message| message.number.clone())
        .styled("figures", "To", |message| message.recipient.clone())
        .column("Carrier", |message| message.carrier.clone())
        .styled("message", "Message", |message| {
            view! { <span class="message-text">{message.message.clone()}</span> }
        })
        .styled(BUTTONS, "Action", move |message| {
            let about = format!("the message from {} to {}", message.number, message.recipient);
            let fields = vec![("recipient", message.recipient.clone())];
            row_form(form, "Assign", &about, fields)
        })
        .in_region_or("Unassigned messages", "Every message belongs to an application.")
}
