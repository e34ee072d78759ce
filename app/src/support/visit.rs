//! `/support/accounts/{account}/{reference}`: an application as its owner sees it, read-only.

use domain::Reference;
use domain::decision::StaffList;
use domain::records::{ApplicationRecord, BatchRecord, BatchStatus, Paged, StatementLine};
use domain::support::MaskedMessage;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::location::Url;
use serde::{Deserialize, Serialize};

use super::desk::row_form;
use super::lists::OfferedReasons;
use super::marked_email::LetterWarning;
use super::masked::{ShowText, masked_table};
use crate::applications::{Overview, statement};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::grouped;
use crate::ui::{
    BUTTONS, FormAlert, FormState, Loaded, Page, StateMark, Table, in_path, parameter,
};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::staff,
    crate::problem::Cause,
    domain::BatchId,
    service::{Actor, BatchFilter, MessageFilter, StatementFilter},
};

/// The number of messages, of batches and of statement lines on a page.
#[cfg(feature = "ssr")]
const LINES: i64 = 25;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VisitView {
    account: i64,
    application: ApplicationRecord,
    messages: Paged<MaskedMessage>,
    batches: Paged<BatchRecord>,
    /// Suggested reasons to pause a batch, those to suspend an application.
    reasons: Vec<String>,
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
    #[server(default)] batches: Option<String>,
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
    let filter = BatchFilter { requestid: None, key: None, limit: LINES, cursor: batches };
    let batches = service.messages().account_batches(account, Some(reference), &filter).await?;
    Ok(VisitView {
        account,
        application,
        messages: Paged {
            items: found.items.into_iter().map(MaskedMessage::from).collect(),
            next: found.next,
        },
        batches,
        reasons: service.applications().staff_list(StaffList::SuspendReasons).await?,
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

/// Pauses a batch of an application for staff, or ends such a pause.
#[server(prefix = "/fn", endpoint = "change-batch")]
pub async fn change_batch(
    reference: Reference,
    batchid: String,
    action: String,
    #[server(default)] reason: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let (support, actor) = (current.service().support(), Actor::Account(account.id));
    let id = BatchId::parse(&batchid).ok_or(Cause::NotFound)?;
    match action.as_str() {
        PAUSE => support.pause_batch(&actor, reference, id, &reason).await?,
        RESUME => support.resume_batch(&actor, reference, id).await?,
        _ => return Err(Cause::Unreadable.into()),
    }
    Ok(())
}

const PAUSE: &str = "pause";
const RESUME: &str = "resume";

#[component]
pub fn VisitPage() -> impl IntoView {
    let form = FormState::new::<ShowText>("text-alert");
    let change = FormState::new::<ChangeBatch>("batch-alert");
    let (id, reference) = (in_path("account"), in_path("reference"));
    let (cursor, messages) = (parameter("cursor"), parameter("messages"));
    let batches = parameter("batches");
    let data = PageData::new(move || {
        change.accepted.track();
        LoadVisit {
            id: id.get(),
            reference: reference.get(),
            cursor: cursor.get(),
            messages: messages.get(),
            batches: batches.get(),
        }
    });
    let render = move |data| {
        let lists = (cursor.get_untracked(), messages.get_untracked());
        view! { <Visit data lists form change/> }
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
    change: FormState,
) -> impl IntoView {
    let VisitView { account, application, messages, batches, reasons, statement: lines, currency } =
        data;
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
    let older = batches.next.map(|cursor| {
        let href = format!("{}#batches", at("batches", &cursor));
        view! { <p><a href=href rel="next">"Older batches"</a></p> }
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
            <h2 id="batches">"Batches"</h2>
            <FormAlert form=change/>
            <OfferedReasons list=StaffList::SuspendReasons reasons/>
            {batch_table(&batches.items, reference, change)}
            {older}
            {statement(&with_messages, "/support/search?q=", lines, &currency)}
        </Page>
    }
}

/// Renders batches for staff. Each that isn't done or cancelled has a form that pauses it, or that
/// ends the pause by staff.
fn batch_table(batches: &[BatchRecord], reference: Reference, form: FormState) -> AnyView {
    Table::wide(batches)
        .time("Time (UTC)", |batch| batch.created_at)
        .styled("key", "Batch ID", |batch| batch.batchid.to_string())
        .column("Status", |batch| {
            let reason = batch.pause_reason.clone();
            let reason = reason.map(|reason| format!("Paused by support: {reason}"));
            view! {
                <StateMark state=batch.status/>
                {reason.map(|text| view! { <div class="fine reason">{text}</div> })}
            }
        })
        .amount("Rows", |batch| grouped(batch.rows))
        .amount("Completed", |batch| grouped(batch.counts.completed()))
        .styled(BUTTONS, "Action", move |batch| batch_action(batch, reference, form))
        .in_region_or("Batches", "No file was uploaded yet.")
}

fn batch_action(batch: &BatchRecord, reference: Reference, form: FormState) -> Option<AnyView> {
    if matches!(batch.status, BatchStatus::Done | BatchStatus::Cancelled) {
        return None;
    }
    let (label, action, reasons) = match batch.pause_reason {
        None => ("Pause", PAUSE, Some(StaffList::SuspendReasons)),
        Some(_) => ("Resume", RESUME, None),
    };
    let fields = vec![
        ("reference", reference.to_string()),
        ("batchid", batch.batchid.to_string()),
        ("action", action.to_owned()),
    ];
    Some(row_form(form, label, fields, reasons).into_any())
}
