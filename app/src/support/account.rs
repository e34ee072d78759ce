//! `/support/accounts/{account}`: the details of an account for staff, and the actions on it.

use domain::records::{AccountRecord, ApplicationRecord};
use domain::support::{AccountFile, NoteRecord};
use domain::webhook::WebhookRecord;
use domain::{DeskAct, KeyKind, Reference, Timestamp};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::location::Url;
use serde::{Deserialize, Serialize};

use super::audit::audit_table;
use super::confirm::confirm_button;
use super::links::{application_link, named_link};
use super::marked_email::LetterWarning;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    DateTime, Fact, FormState, Loaded, Page, PostForm, SecretField, State, SubmitButton, Table,
    TextArea, in_path, optional_fact,
};
use crate::webhooks::status;
#[cfg(feature = "ssr")]
use {
    super::reset_link::take_reset_link,
    crate::portal_request::{is_shown, redirect_to, staff},
    crate::problem::Cause,
    domain::Refusal,
    service::{Actor, AuditFilter},
};

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccountView {
    file: AccountFile,
    /// Whether this is the account of the member of staff who opened the page.
    is_own: bool,
    sends_mail: bool,
    currency: String,
    /// A new reset link. It is shown once.
    link: Option<String>,
    /// When the last reset link was made, and who made it.
    last_link: Option<(Timestamp, String)>,
}

/// Loads an account with its details for staff, and a new reset link if there is one.
#[server(prefix = "/fn", endpoint = "support-account", input = GetUrl)]
pub async fn load_support_account(id: String) -> Result<AccountView, Problem> {
    let (current, reader) = staff().await?;
    let id = match id.parse() {
        Ok(id) => id,
        // Other pages link to an account by its email.
        Err(_) => {
            (current.service().accounts().find_account(&id).await?).ok_or(Cause::NotFound)?.id
        }
    };
    let file = match current.service().support().account_file(id).await {
        Err(error) if error.refusal() == Some(&Refusal::NoSuchAccount) => {
            return Err(Cause::NotFound.into());
        }
        file => file?,
    };
    let link = if is_shown() { take_reset_link(&current).await? } else { None };
    let made = AuditFilter {
        subject: Some(file.account.email.clone()),
        action: Some("account.reset".to_owned()),
        limit: 1,
        ..AuditFilter::default()
    };
    let made = current.service().support().audit(&made).await?.items.into_iter().next();
    let last_link = made.map(|entry| (entry.at, entry.who));
    let (is_own, currency) = (file.account.id == reader.id, current.site().currency.clone());
    let sends_mail = current.service().operations().sends_mail();
    Ok(AccountView { file, is_own, sends_mail, currency, link, last_link })
}

#[server(prefix = "/fn", endpoint = "add-note")]
pub async fn add_note(id: i64, text: String) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let service = current.service();
    let found = service.accounts().account(id).await?;
    let email = found.ok_or(Cause::Refused(Refusal::NoSuchAccount))?.email;
    let actor = Actor::Account(account.id);
    let added = service.support().add_note(&actor, &email, &text).await;
    let added = added.map_err(Problem::from);
    added.map_err(|problem| problem.typed("text", &text))?;
    redirect_to(&format!("/support/accounts/{id}"))
}

#[component]
pub fn SupportAccountPage() -> impl IntoView {
    let form = FormState::new::<AddNote>("note-alert");
    let id = in_path("account");
    let data = PageData::after([form], move || LoadSupportAccount { id: id.get() });
    view! { <Loaded data render=move |data| view! { <Account data form/> }/> }
}

#[component]
fn Account(data: AccountView, form: FormState) -> impl IntoView {
    let AccountView { file, is_own, sends_mail, currency, link, last_link } = data;
    let email = file.account.email.clone();
    let entries = format!("/support/audit?subject={}", Url::escape(&email));
    view! {
        <Page title=email.clone() back=("/support/accounts", "Accounts")>
            <LetterWarning email/>
            {link.map(|link| view! { <ResetLink link/> })}
            {facts(file.clone(), last_link, sends_mail)}
            {actions(file.clone(), is_own)}
            <h2>"Applications"</h2>
            {applications(&file.applications, &currency)}
            <h2>"Endpoints"</h2>
            {endpoints(&file.endpoints)}
            <h2>"Notes"</h2>
            {notes(file.notes)}
            <NoteForm id=file.account.id form/>
            <h2>"Audit"</h2>
            {audit_table(&file.audit, &currency)}
            <p><a href=entries>"All entries about the account itself"</a></p>
        </Page>
    }
}

/// Says whether the owner confirmed the account's email. Without a mail server, nobody can.
pub const fn confirmed(account: &AccountRecord, sends_mail: bool) -> &'static str {
    match (sends_mail, account.confirmed_at) {
        (false, _) => "not checked: no mail server",
        (true, Some(_)) => "yes",
        (true, None) => "no",
    }
}

fn facts(
    file: AccountFile,
    last_link: Option<(Timestamp, String)>,
    sends_mail: bool,
) -> impl IntoView {
    let last_link = last_link.map(|(at, who)| view! { <DateTime at/> " by " {named_link(&who)} });
    let account = file.account;
    let time = |at| view! { <DateTime at/> };
    let yes_or_no = |yes| if yes { "yes" } else { "no" };
    let state = if account.closed {
        "closed"
    } else if file.disabled_at.is_some() {
        "disabled"
    } else {
        "enabled"
    };
    let disabled_term = if account.closed { "Closed (UTC)" } else { "Disabled (UTC)" };
    let role = if account.staff { "staff" } else { "customer" };
    let confirmed = confirmed(&account, sends_mail);
    let second_factor = yes_or_no(account.second_factor);
    let (created_at, devices) = (file.created_at, file.devices.to_string());
    view! {
        <dl class="facts">
            <Fact term="State">{state}</Fact>
            {optional_fact(disabled_term, "figures", file.disabled_at.map(time))}
            {optional_fact("Reason", "", file.disabled_reason.clone())}
            <Fact term="Role">{role}</Fact>
            <Fact term="Created (UTC)" class="figures"><DateTime at=created_at/></Fact>
            <Fact term="Email confirmed">{confirmed}</Fact>
            <Fact term="Second factor">{second_factor}</Fact>
            {optional_fact("Second factor since (UTC)", "figures", file.factor_since.map(time))}
            <Fact term="Signed-in devices" class="figures">{devices}</Fact>
            {optional_fact("Last reset link (UTC)", "figures", last_link)}
        </dl>
    }
}

#[component]
fn ResetLink(link: String) -> impl IntoView {
    view! {
        <div class="notice">
            <p>
                "Give this link to the owner of the account. We show it only once. It works once, \
                 within 1 hour."
            </p>
            <SecretField label="Reset link" name="link" value=link copy_label="Copy link"/>
        </div>
    }
}

/// Renders a button for each action that the account's state allows.
fn actions(file: AccountFile, is_own: bool) -> AnyView {
    if is_own {
        return view! {
            <p class="notice">
                "This is your own account. Change your password and your second factor on "
                <a href="/account">"your account's pages"</a>
                ". Another member of staff can do the rest."
            </p>
        }
        .into_any();
    }
    let (disabled, account) = (file.disabled_at.is_some(), file.account);
    let (id, next) = (account.id.to_string(), format!("/support/accounts/{}", account.id));
    let acts = [
        (!account.staff && !account.closed, DeskAct::Promote),
        (account.staff, DeskAct::Demote),
        (disabled && !account.closed, DeskAct::Enable),
        (file.devices > 0, DeskAct::SignOut),
        (account.second_factor, DeskAct::ResetFactor),
        (!account.closed, DeskAct::MakeResetLink),
        (!disabled, DeskAct::Disable),
    ];
    let acts = acts.into_iter().filter(|(is_possible, _)| *is_possible);
    let acts: Vec<_> =
        acts.map(|(_, act)| confirm_button(act, "", id.clone(), next.clone())).collect();
    view! { <div class="buttons">{acts}</div> }.into_any()
}

fn applications(applications: &[ApplicationRecord], currency: &str) -> AnyView {
    Table::wide(applications)
        .styled("key", "Reference", |application| application_link(application.reference))
        .column("Category", |application| application.category.as_str())
        .state("Status", |application| State::from(application))
        .money("Balance", currency, |application| application.balance.shown())
        .in_region_or("Applications", "The account has no application.")
}

fn endpoints(endpoints: &[(Reference, KeyKind, WebhookRecord)]) -> AnyView {
    Table::wide(endpoints)
        .styled("key", "Reference", |(reference, ..)| application_link(*reference))
        .column("Key", |(_, kind, _)| kind.as_str())
        .styled("key url", "URL", |(.., record)| record.url.clone())
        .column("Status", |(.., record)| status(record))
        .time("Created (UTC)", |(.., record)| record.created_at)
        .in_region_or("Endpoints", "The account has no webhook endpoint.")
}

/// Renders the notes of staff.
pub fn notes(notes: Vec<NoteRecord>) -> AnyView {
    if notes.is_empty() {
        return view! { <p class="empty">"There is no note."</p> }.into_any();
    }
    let notes = notes.into_iter().map(|note| {
        view! {
            <li>
                <DateTime at=note.at/>
                " "
                {named_link(&note.author)}
                <blockquote class="sms">{note.text}</blockquote>
            </li>
        }
    });
    view! { <ul>{notes.collect_view()}</ul> }.into_any()
}

#[component]
fn NoteForm(id: i64, form: FormState) -> impl IntoView {
    let text = form.typed("text").unwrap_or_default();
    view! {
        <PostForm form>
            <input type="hidden" name="id" value=id.to_string()/>
            <TextArea
                label="Note"
                id="field-text"
                name="text"
                rows="3"
                text
                required=true
                hint="Only staff can read notes. At most 2,000 characters. Notes can't be changed \
                      later."
            />
            <SubmitButton label="Add the note" form/>
        </PostForm>
    }
}
