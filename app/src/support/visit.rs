//! `/support/accounts/{account}/{reference}`: an application as its owner sees it, read-only.

#[cfg(feature = "ssr")]
use domain::Reference;
use domain::records::{ApplicationRecord, Paged, StatementLine};
use domain::support::MaskedMessage;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::location::Url;
use serde::{Deserialize, Serialize};

use super::marked_email::LetterWarning;
use super::masked::{ShowText, masked_table};
use crate::applications::{Overview, statement};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{FormAlert, FormState, Loaded, Page, in_path, parameter};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::staff,
    crate::problem::Cause,
    service::{Actor, MessageFilter, StatementFilter},
};

/// The number of messages, and of statement lines, on a page.
#[cfg(feature = "ssr")]
const LINES: i64 = 25;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VisitView {
    account: i64,
    application: ApplicationRecord,
    messages: Paged<MaskedMessage>,
    statement: Paged<StatementLine>,
    currency: String,
}

/// Loads an application for staff. The audit log records the visit.
#[server(prefix = "/fn", endpoint = "support-visit", input = GetUrl)]
pub async fn load_visit(
    id: String,
    reference: String,
    #[server(default)] cursor: Option<String>,
    #[server(default)] messages: Option<String>,
) -> Result<VisitView, Problem> {
    let (current, staff) = staff().await?;
    let account = id.parse::<i64>().map_err(|_| Cause::NotFound)?;
    let reference = Reference::parse(&reference)?;
    let service = current.service();
    let actor = Actor::Account(staff.id);
    let support = service.support();
    let visited = support.visit_application(&actor, account, reference);
    let application = visited.await?;
    let filter = MessageFilter { limit: LINES, cursor: messages, ..MessageFilter::default() };
    let found = service.messages().account_messages(account, Some(reference), &filter).await?;
    Ok(VisitView {
        account,
        application,
        messages: Paged {
            items: found.items.into_iter().map(MaskedMessage::from).collect(),
            next: found.next,
        },
        statement: service
            .applications()
            .statement(
                account,
                reference,
                StatementFilter {
                    cursor: cursor.as_deref(),
                    limit: LINES,
                    ..StatementFilter::default()
                },
            )
            .await?,
        currency: current.site().currency.clone(),
    })
}

#[component]
pub fn VisitPage() -> impl IntoView {
    let form = FormState::new::<ShowText>("text-alert");
    let (id, reference) = (in_path("account"), in_path("reference"));
    let (cursor, messages) = (parameter("cursor"), parameter("messages"));
    let data = PageData::new(move || LoadVisit {
        id: id.get(),
        reference: reference.get(),
        cursor: cursor.get(),
        messages: messages.get(),
    });
    let render = move |data| {
        let lists = (cursor.get_untracked(), messages.get_untracked());
        view! { <Visit data lists form/> }
    };
    view! { <Loaded data render/> }
}

#[component]
fn Visit(
    data: VisitView,
    /// The cursors of the statement and of the messages. A link to the next page of one list keeps
    /// the page of the other.
    lists: (Option<String>, Option<String>),
    form: FormState,
) -> impl IntoView {
    let VisitView { account, application, messages, statement: lines, currency } = data;
    let (reference, email) = (application.reference, application.email.clone());
    let back = format!("/support/accounts/{account}");
    let here = format!("{back}/{reference}");
    let at = |name: &str, cursor: &str| format!("{here}?{name}={}", Url::escape(cursor));
    let (of_statement, of_messages) = lists;
    let next = messages.next.map(|cursor| {
        let statement = of_statement.map(|cursor| format!("&cursor={}", Url::escape(&cursor)));
        let href = at("messages", &cursor) + statement.as_deref().unwrap_or_default();
        view! { <p><a href=href rel="next">"Older messages"</a></p> }
    });
    let with_messages = of_messages.map_or_else(|| here.clone(), |cursor| at("messages", &cursor));
    view! {
        <Page title=format!("{} application", application.category)>
            <p class="back"><a href=back>"Account"</a></p>
            <p class="notice">{format!("You are viewing an application of {email}.")}</p>
            <LetterWarning email/>
            <Overview application currency=currency.clone()/>
            <h2 id="messages">"Messages"</h2>
            <FormAlert form/>
            {masked_table(&messages.items, |message| message, form)
                .in_region_or("Messages", "No message was sent yet.")}
            {next}
            {statement(&with_messages, "/support/search?q=", lines, &currency)}
        </Page>
    }
}
