//! `/support/applications/{reference}`: an application with all that staff need to decide about it.

use domain::readiness::Blocker;
use domain::records::{
    AccountRecord, ApplicationRecord, BatchRecord, BatchStatus, Paged, SenderCase,
    SenderRequestRecord, StatementLine,
};
use domain::support::{MaskedMessage, NoteRecord};
use domain::{DeskAct, MessageStatus, Money, Reference, Refusal, Timestamp};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::location::Url;
use serde::{Deserialize, Serialize};

use super::account::{confirmed, notes};
use super::applications::actions;
use super::confirm::{ActOn, confirm_button};
use super::links::{application_link, application_path, named_link};
use super::marked_email::MarkedEmail;
use super::masked::{ShowText, masked_table};
use super::readiness::SendsNow;
use super::senders::requested_name;
use crate::applications::{Overview, sender_for_staff, statement};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::grouped;
use crate::ui::{
    BUTTONS, DateTime, Fact, FormAlert, FormState, Loaded, Page, StateMark, Table, in_path,
    parameter,
};
#[cfg(feature = "ssr")]
use {
    super::desk::own_email,
    crate::portal_request::staff,
    domain::SenderStatus,
    service::{Actor, BatchFilter, MessageFilter, Service, StatementFilter},
};

/// The number of failed messages, and of refused calls.
#[cfg(feature = "ssr")]
const FAILURES: i64 = 5;
/// The number of messages, of batches and of statement lines on a page.
#[cfg(feature = "ssr")]
const LINES: i64 = 25;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VisitView {
    application: ApplicationRecord,
    /// Why it can't send now.
    blockers: Vec<Blocker>,
    local_price: Money,
    applicant: Applicant,
    /// The sender name that waits for a decision.
    sender_case: Option<SenderCase>,
    /// The newest messages that failed, and the newest calls that were refused.
    failed: Vec<MaskedMessage>,
    refused: Vec<RefusedCall>,
    messages: Paged<MaskedMessage>,
    batches: Paged<BatchRecord>,
    statement: Paged<StatementLine>,
    /// The email of the reader, if they can't favour their own applications.
    own: Option<String>,
    currency: String,
}

/// The owner of an application.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Applicant {
    account: AccountRecord,
    created_at: Timestamp,
    sends_mail: bool,
    disabled_at: Option<Timestamp>,
    disabled_reason: Option<String>,
    /// All applications of the account.
    applications: Vec<ApplicationRecord>,
    notes: Vec<NoteRecord>,
    /// The requests for sender names for this application, newest first.
    sender_names: Vec<SenderRequestRecord>,
}

/// A call that was refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefusedCall {
    at: Timestamp,
    call: String,
    from: Option<String>,
    why: String,
}

/// Loads an application for staff. The audit log records the visit.
#[server(prefix = "/fn", endpoint = "support-visit", input = GetUrl)]
pub async fn load_visit(
    reference: String,
    #[server(default)] cursor: Option<String>,
    #[server(default)] messages: Option<String>,
    #[server(default)] batches: Option<String>,
) -> Result<VisitView, Problem> {
    let (current, staff) = staff().await?;
    let reference = Reference::parse(&reference)?;
    let service = current.service();
    let actor = Actor::Account(staff.id);
    let (owner, application) = service.support().visit_application(&actor, reference).await?;
    let account = owner.account_id;
    let filter = MessageFilter { limit: LINES, cursor: messages, ..MessageFilter::default() };
    let found = service.messages().account_messages(account, Some(reference), &filter).await?;
    let filter = BatchFilter { limit: LINES, cursor: batches, ..Default::default() };
    let batches = service.messages().account_batches(account, Some(reference), &filter).await?;
    let filter = StatementFilter { cursor: cursor.as_deref(), limit: LINES, ..Default::default() };
    let local_price = service.money().price_list().await?.prices.local;
    let applicant = applicant(service, account, reference).await?;
    Ok(VisitView {
        own: own_email(&current, &staff),
        blockers: service.applications().blockers(&application).await?,
        local_price,
        sender_case: sender_case(service, &applicant).await?,
        applicant,
        failed: failed(service, account, reference).await?,
        refused: refused(service, account, reference).await?,
        messages: Paged {
            items: found.items.into_iter().map(MaskedMessage::from).collect(),
            next: found.next,
        },
        batches,
        statement: service.applications().statement(account, reference, filter).await?,
        currency: current.site().currency.clone(),
        application,
    })
}

#[cfg(feature = "ssr")]
async fn applicant(
    service: &Service,
    account: i64,
    reference: Reference,
) -> Result<Applicant, Problem> {
    let file = service.support().account_file(account).await?;
    let applications = service.applications();
    let names = applications.sender_names_asked_for(account, reference);
    Ok(Applicant {
        created_at: file.created_at,
        sends_mail: service.operations().sends_mail(),
        disabled_at: file.disabled_at,
        disabled_reason: file.disabled_reason,
        applications: file.applications,
        notes: file.notes,
        sender_names: names.await?,
        account: file.account,
    })
}

#[cfg(feature = "ssr")]
async fn sender_case(
    service: &Service,
    applicant: &Applicant,
) -> Result<Option<SenderCase>, Problem> {
    let mut names = applicant.sender_names.iter();
    match names.find(|request| request.status == SenderStatus::Pending) {
        Some(request) => Ok(service.applications().sender_case(request.id).await?),
        None => Ok(None),
    }
}

/// Returns the newest messages of an application that failed.
#[cfg(feature = "ssr")]
async fn failed(
    service: &Service,
    account: i64,
    reference: Reference,
) -> Result<Vec<MaskedMessage>, Problem> {
    let mut failed = Vec::new();
    for status in [MessageStatus::Failed, MessageStatus::Expired, MessageStatus::Rejected] {
        let filter = MessageFilter { status: Some(status), limit: FAILURES, ..Default::default() };
        let messages = service.messages();
        let found = messages.account_messages(account, Some(reference), &filter);
        failed.extend(found.await?.items.into_iter().map(MaskedMessage::from));
    }
    failed.sort_unstable_by_key(|message| std::cmp::Reverse(message.transid));
    failed.truncate(usize::try_from(FAILURES).unwrap_or(usize::MAX));
    Ok(failed)
}

/// Returns the newest calls with an application's keys that were refused.
#[cfg(feature = "ssr")]
async fn refused(
    service: &Service,
    account: i64,
    reference: Reference,
) -> Result<Vec<RefusedCall>, Problem> {
    let calls = service.applications().api_calls(account, reference).await?.into_iter();
    let refused = calls.filter_map(|call| {
        let reason = call.reason?;
        Some(RefusedCall {
            at: call.at,
            call: call.call.replace("{key}", "…"),
            from: call.from,
            why: call.detail.unwrap_or_else(|| format!("{reason}: {}", reason.sentence())),
        })
    });
    Ok(refused.take(usize::try_from(FAILURES).unwrap_or(usize::MAX)).collect())
}

#[component]
pub fn VisitPage() -> impl IntoView {
    let form = FormState::new::<ShowText>("text-alert");
    let decide = FormState::new::<ActOn>("decision-alert");
    let reference = in_path("reference");
    let (cursor, messages) = (parameter("cursor"), parameter("messages"));
    let batches = parameter("batches");
    let data = PageData::after([decide], move || LoadVisit {
        reference: reference.get(),
        cursor: cursor.get(),
        messages: messages.get(),
        batches: batches.get(),
    });
    let render = move |data| {
        let lists = (cursor.get_untracked(), messages.get_untracked());
        view! { <Visit data lists form decide/> }
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
    decide: FormState,
) -> impl IntoView {
    let VisitView { application, messages, batches, currency, .. } = data.clone();
    let (reference, lines) = (application.reference, data.statement.clone());
    let own = data.own.clone();
    let own = own.as_deref();
    let is_own = own == Some(application.email.as_str());
    let buttons = actions(&application, own, decide, application_path(reference));
    let requested = data
        .sender_case
        .as_ref()
        .map(|case| requested_name(case, own, decide, application_path(reference)));
    let here = application_path(reference);
    let at = |name: &str, cursor: &str| format!("{here}?{name}={}", Url::escape(cursor));
    let (of_statement, of_messages) = lists;
    let next = messages.next.map(|cursor| {
        let statement = of_statement.map(|cursor| format!("&cursor={}", Url::escape(&cursor)));
        let href = at("messages", &cursor) + statement.as_deref().unwrap_or_default();
        view! { <p><a href=href rel="next">"Older messages"</a></p> }
    });
    let older = batches.next.map(|cursor| {
        let href = format!("{}#batches", at("batches", &cursor));
        view! { <p><a href=href rel="next">"Older batches"</a></p> }
    });
    let with_messages = of_messages.map_or_else(|| here.clone(), |cursor| at("messages", &cursor));
    view! {
        <Page
            title=application.display_name()
            back=("/support/applications", "Applications")
        >
            <FormAlert form=decide/>
            {is_own.then(|| view! { <p class="notice">{Refusal::OwnApplication.to_string()}</p> })}
            <div class="buttons">{buttons}</div>
            {requested}
            <SendsNow
                application=application.clone()
                blockers=data.blockers
                disabled_reason=data.applicant.disabled_reason.clone()
                local_price=data.local_price
                currency=currency.clone()
            />
            <Overview
                sender_name=sender_for_staff(&application)
                application
                currency=currency.clone()
            />
            {applicant_section(&data.applicant, reference)}
            <h2 id="failures">"Last failures"</h2>
            {refused_table(&data.refused)}
            {masked_table(&data.failed, |message| message, form)
                .in_region_or("Failed messages", "No message failed.")}
            <h2 id="messages">"Messages"</h2>
            <FormAlert form/>
            {masked_table(&messages.items, |message| message, form)
                .in_region_or("Messages", "No message was sent yet.")}
            {next}
            <h2 id="batches">"Batches"</h2>
            {batch_table(&batches.items, reference, is_own)}
            {older}
            {statement(&with_messages, "/support/search?q=", lines, &currency)}
        </Page>
    }
}

/// Renders the facts about an application's owner that a decision needs.
fn applicant_section(applicant: &Applicant, reference: Reference) -> impl IntoView + use<> {
    let Applicant { account, created_at, disabled_at, .. } = applicant.clone();
    let state = if account.closed {
        "Account closed"
    } else if disabled_at.is_some() {
        "disabled"
    } else {
        "enabled"
    };
    let confirmed = confirmed(&account, applicant.sends_mail);
    let others = applicant.applications.iter().filter(|other| other.reference != reference);
    let others: Vec<_> =
        others.map(|other| view! { {application_link(other.reference)} " " }).collect();
    let others = if others.is_empty() { "none".into_any() } else { others.into_any() };
    view! {
        <h2 id="applicant">"Applicant"</h2>
        <dl class="facts">
            <Fact term="Account"><MarkedEmail id=account.id email=account.email/></Fact>
            <Fact term="Account state">{state}</Fact>
            <Fact term="Registered (UTC)" class="figures"><DateTime at=created_at/></Fact>
            <Fact term="Email confirmed">{confirmed}</Fact>
            <Fact term="Other applications">{others}</Fact>
        </dl>
        {sender_table(&applicant.sender_names)}
        {(!applicant.notes.is_empty()).then(|| notes(applicant.notes.clone()))}
    }
}

fn sender_table(names: &[SenderRequestRecord]) -> AnyView {
    Table::wide(names)
        .styled("key", "Sender name", |request| request.name.clone())
        .state("Status", |request| request.status)
        .time("Requested (UTC)", |request| request.requested_at)
        .time("Decided (UTC)", |request| request.decided_at)
        .column("Reason", |request| request.reason.clone())
        .in_region_or("Requests for sender names", "No sender name was requested.")
}

fn refused_table(calls: &[RefusedCall]) -> AnyView {
    Table::wide(calls)
        .time("Time (UTC)", |call| call.at)
        .styled("key", "Call", |call| call.call.clone())
        .styled("key", "From", |call| call.from.clone())
        .column("Why it was refused", |call| call.why.clone())
        .in_region_or("Refused calls", "No call was refused recently.")
}

/// Renders batches for staff. Each that isn't done or cancelled has a button that pauses it, or that
/// ends the pause by staff.
fn batch_table(batches: &[BatchRecord], reference: Reference, is_own: bool) -> AnyView {
    Table::wide(batches)
        .time("Time (UTC)", |batch| batch.created_at)
        .styled("key", "Batch ID", |batch| named_link(&batch.batchid.to_string()))
        .column("Status", |batch| {
            let reason = batch.pause_reason.clone();
            let reason = reason.map(|reason| format!("Paused by support: {reason}"));
            view! {
                <StateMark state=batch.status/>
                {reason.map(|text| view! { <div class="fine reason">{text}</div> })}
            }
        })
        .amount("Rows", |batch| grouped(batch.rows))
        .amount("Delivered", |batch| grouped(batch.counts.get(MessageStatus::Delivered)))
        .styled(BUTTONS, "Action", move |batch| batch_action(batch, reference, is_own))
        .in_region_or("Batches", "No file was uploaded yet.")
}

fn batch_action(batch: &BatchRecord, reference: Reference, is_own: bool) -> Option<AnyView> {
    let is_over = matches!(batch.status, BatchStatus::Done | BatchStatus::Cancelled);
    if is_over || (is_own && batch.pause_reason.is_some()) {
        return None;
    }
    let act = if batch.pause_reason.is_some() { DeskAct::ResumeBatch } else { DeskAct::PauseBatch };
    let about = batch.batchid.to_string();
    let subject = format!("{reference} {about}");
    Some(confirm_button(act, &about, subject, application_path(reference)).into_any())
}
