//! `/reports/{transid}` and `/reports/{batchid}`: the page of a message or a batch.

use domain::records::{BatchRecord, MessageDetail};
use domain::{Money, Reference, Refusal};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::batch::BatchContent;
use super::message::MessageContent;
use super::stop::StopReport;
#[cfg(feature = "ssr")]
use super::thread::thread;
use super::thread::{ThreadMessage, thread_section};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{FormState, Loaded, Page, in_path, parameter};
#[cfg(feature = "ssr")]
use {
    super::stop::CANCEL,
    crate::portal_request::{missing_step_up, signed_in},
    crate::problem::Cause,
    domain::{BatchId, Transid},
};

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The application that the message or batch belongs to.
    reference: Reference,
    application_name: String,
    subject: Subject,
    /// The number of messages that a change of the batch is about, and their cost. Only if the page
    /// asks to confirm a change.
    affected: Option<(i64, Money)>,
    /// The refusal that asks for step-up authentication, if the page asks to confirm a cancellation
    /// and it is needed.
    missing: Option<Refusal>,
    /// The messages to and from the number of the message.
    thread: Vec<ThreadMessage>,
    currency: String,
    /// How many days texts are kept, or 0.
    text_days: i64,
}

/// The message or batch that the page shows. The first letter of an ID says which it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Subject {
    Message(MessageDetail),
    Batch(BatchRecord),
}

/// Loads a message or batch of the account.
#[server(prefix = "/fn", endpoint = "report", input = GetUrl)]
pub async fn load_report(id: String, confirm: Option<String>) -> Result<Report, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let (mut conversation, mut affected) = (Vec::new(), None);
    let (reference, subject) = if let Some(batchid) = BatchId::parse(&id) {
        let found = service.messages().account_batch(account.id, batchid).await?;
        let (reference, batch) = found.ok_or(Cause::NotFound)?;
        if confirm.is_some() {
            let (access, _) = super::stop::find(service, account.id, &id).await?;
            affected = Some(service.messages().stoppable(&access, batchid).await?);
        }
        (reference, Subject::Batch(batch))
    } else {
        let transid = Transid::parse(&id).ok_or(Cause::NotFound)?;
        let found = service.messages().account_message(account.id, transid).await?;
        let (reference, detail) = found.ok_or(Cause::NotFound)?;
        conversation = thread(service, account.id, reference, &detail.record).await?;
        (reference, Subject::Message(detail))
    };
    let missing = if confirm.as_deref() == Some(CANCEL) {
        missing_step_up(&current, &account).await?
    } else {
        None
    };
    let application = service.applications().application(account.id, reference).await?;
    Ok(Report {
        reference,
        application_name: application.ok_or(Cause::NotFound)?.display_name(),
        subject,
        affected,
        missing,
        thread: conversation,
        currency: current.site().currency.clone(),
        text_days: service.limits().text_days,
    })
}

#[component]
pub fn ReportPage() -> impl IntoView {
    let (id, confirm) = (in_path("id"), parameter("confirm"));
    let form = FormState::new::<StopReport>("stop-alert");
    let data = PageData::after([form], move || LoadReport { id: id.get(), confirm: confirm.get() });
    view! { <Loaded data render=move |report| view! { <ReportContent report form/> }/> }
}

#[component]
fn ReportContent(report: Report, form: FormState) -> impl IntoView {
    let Report { reference, application_name, missing, currency, text_days, .. } = report;
    let (title, content) = match report.subject {
        Subject::Message(detail) => {
            let thread = thread_section(&report.thread);
            let content = view! {
                <MessageContent detail reference application_name missing currency text_days form/>
                {thread}
            };
            ("Message", content.into_any())
        }
        Subject::Batch(batch) => {
            let affected = report.affected;
            let content = view! {
                <BatchContent batch reference application_name missing currency affected form/>
            };
            ("Batch", content.into_any())
        }
    };
    view! { <Page title back=("/reports", "All reports")>{content}</Page> }
}
