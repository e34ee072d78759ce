//! `/support/mail`: the mails that wait, were kept or have failed, and those sent recently.

use domain::records::{MailRecord, Paged};
use domain::{MailKind, MailState};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::desk::row_form;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::counted;
use crate::ui::{BUTTONS, FormAlert, FormState, Loaded, Page, Table, next_link, parameter};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{redirect_to, staff},
    service::Actor,
};

/// The number of mails on a page.
#[cfg(feature = "ssr")]
const MAILS: i64 = 50;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailsView {
    mails: Paged<MailRecord>,
    /// Whether the server sends mails. If not, it only keeps them.
    sends: bool,
    /// How many days mails are kept.
    days: i64,
}

/// Loads the mails for staff.
#[server(prefix = "/fn", endpoint = "mails", input = GetUrl)]
pub async fn load_mails(#[server(default)] cursor: Option<String>) -> Result<MailsView, Problem> {
    let (current, _) = staff().await?;
    let service = current.service();
    Ok(MailsView {
        mails: service.operations().mails(cursor.as_deref(), MAILS).await?,
        sends: service.operations().sends_mail(),
        days: service.limits().mail_days,
    })
}

/// Queues a mail again.
#[server(prefix = "/fn", endpoint = "retry-mail")]
pub async fn retry_mail(id: i64) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let actor = Actor::Account(account.id);
    current.service().operations().retry_mail(&actor, id).await?;
    redirect_to("/support/mail")
}

#[component]
pub fn MailsPage() -> impl IntoView {
    let form = FormState::new::<RetryMail>("retry-alert");
    let cursor = parameter("cursor");
    let data = PageData::after([form], move || LoadMails { cursor: cursor.get() });
    view! { <Loaded data render=move |data| view! { <Mails data form/> }/> }
}

#[component]
fn Mails(data: MailsView, form: FormState) -> impl IntoView {
    let MailsView { mails, sends, days } = data;
    let days = counted(days, "day");
    let lead = if sends {
        format!(
            "We try to send each mail for a day, with growing pauses. We delete the text of a mail \
             when it is sent, and every mail after {days}."
        )
    } else {
        format!(
            "No mail server is set up, so mails are kept here for {days}. Read them, and contact \
             their recipients if necessary."
        )
    };
    view! {
        <Page title="Mail">
            <p class="lead">{lead}</p>
            <FormAlert form/>
            {listed(&mails.items, sends, form)}
            {next_link("/support/mail", mails.next, "Older mails")}
        </Page>
    }
}

fn listed(mails: &[MailRecord], sends: bool, form: FormState) -> AnyView {
    Table::wide(mails)
        .state("State", |mail| mail.state)
        .time("Written (UTC)", |mail| mail.created_at)
        .column("Recipient", |mail| mail.recipient.clone())
        .column("Mail", said)
        .amount("Attempts", |mail| mail.attempts)
        .column("Last error", |mail| mail.last_error.as_deref().unwrap_or("none").to_owned())
        .styled(BUTTONS, "Action", move |mail| actions(mail, sends, form))
        .in_region_or("Mails", "There is no mail.")
}

/// Renders the subject, and the text if it is still stored.
fn said(mail: &MailRecord) -> impl IntoView + use<> {
    let subject = mail.subject.clone();
    if mail.text.is_empty() {
        return view! { <span>{subject}</span> }.into_any();
    }
    let paragraphs = mail.text.split("\n\n").map(str::to_owned);
    let paragraphs: Vec<_> = paragraphs.map(|text| view! { <p>{text}</p> }).collect();
    view! {
        <details>
            <summary>{subject}</summary>
            {paragraphs}
        </details>
    }
    .into_any()
}

/// Renders what staff can do. Without a mail server, no mail can be sent again.
fn actions(mail: &MailRecord, sends: bool, form: FormState) -> impl IntoView + use<> {
    let can_retry = matches!(mail.state, MailState::Queued | MailState::Kept | MailState::Failed);
    let retry = (sends && can_retry).then(|| {
        let fields = vec![("id", mail.id.to_string())];
        row_form(form, "Retry", &format!("mail {}", mail.id), fields)
    });
    // Staff can make a reset link on the account's page, after step-up authentication.
    let resets = mail.kind == MailKind::Reset;
    let account = resets.then(|| {
        let email = leptos_router::location::Url::escape(&mail.recipient);
        let href = format!("/support/accounts?email={email}");
        view! { <a href=href>"Account"</a> }
    });
    view! {
        {retry}
        {account}
    }
}
