//! `/support/messages/{transid}`: a message with its segments and the carriers' answers.

use domain::support::{MessageFile, SegmentRecord};
use domain::{MessageStatus, Transid};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::links::application_link;
use super::marked_email::MarkedEmail;
use super::masked::{ShowText, ShowTextForm, masked};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::{Charge, MessageFacts, MessageText, Timeline};
use crate::ui::{Fact, FormAlert, FormState, Loaded, Page, PostForm, StepUpField, Table, in_path};
#[cfg(feature = "ssr")]
use {
    super::masked::text_name,
    crate::portal_request::{is_shown, staff, step_up},
    crate::problem::Cause,
    service::{Actor, Settlement},
};

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageView {
    file: MessageFile,
    currency: String,
    /// The text, if staff just asked to see it.
    text: Option<String>,
}

/// Loads a message for staff, and its text if staff just asked to see it.
#[server(prefix = "/fn", endpoint = "support-message", input = GetUrl)]
pub async fn load_support_message(transid: String) -> Result<MessageView, Problem> {
    let (current, _) = staff().await?;
    let transid = Transid::parse(&transid).ok_or(Cause::NotFound)?;
    let file = current.service().support().message_file(transid).await?;
    let text = if is_shown() { current.take_text(&text_name(transid)).await? } else { None };
    Ok(MessageView {
        file: file.ok_or(Cause::NotFound)?,
        currency: current.site().currency.clone(),
        text,
    })
}

/// Decides about a message whose outcome is unknown, after the carrier has told staff.
#[server(prefix = "/fn", endpoint = "decide-message")]
pub async fn decide_message(
    transid: String,
    decision: String,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    step_up(&current, &account, &credential).await?;
    let transid = Transid::parse(&transid).ok_or(Cause::NotFound)?;
    let (service, actor) = (current.service(), Actor::Account(account.id));
    let settlement = match decision.as_str() {
        DELIVERED => Settlement::Delivered,
        FAILED => Settlement::Failed,
        NEVER_SENT => Settlement::NeverSent,
        AGAIN => return Ok(service.support().requeue_message(&actor, transid).await?),
        _ => return Err(Cause::Unreadable.into()),
    };
    Ok(service.support().settle_message(&actor, transid, settlement).await?)
}

const DELIVERED: &str = "delivered";
const FAILED: &str = "failed";
const NEVER_SENT: &str = "never-sent";
const AGAIN: &str = "again";

#[component]
pub fn SupportMessagePage() -> impl IntoView {
    let form = FormState::new::<ShowText>("text-alert");
    let deciding = FormState::new::<DecideMessage>("decision-alert");
    let transid = in_path("transid");
    let data =
        PageData::after([form, deciding], move || LoadSupportMessage { transid: transid.get() });
    view! { <Loaded data render=move |data| view! { <Message data form deciding/> }/> }
}

/// The form for a message whose outcome is unknown.
#[component]
fn Decision(transid: Transid, form: FormState) -> impl IntoView {
    const DECISIONS: [(&str, &str); 4] = [
        (DELIVERED, "Delivered"),
        (FAILED, "Not delivered"),
        (NEVER_SENT, "Never sent: release the charge"),
        (AGAIN, "Submit once more"),
    ];
    let buttons = DECISIONS.map(|(value, label)| {
        view! {
            <button type="submit" class="button" name="decision" value=value>{label}</button>
        }
    });
    let was_sent = form.was_sent("transid", transid.to_string());
    view! {
        <h2>"Unknown outcome"</h2>
        <p>
            "The carrier didn't answer the submit. Ask the carrier what became of the message, and \
             decide. A message that is submitted once more may arrive twice. This can't be undone."
        </p>
        <PostForm form>
            <input type="hidden" name="transid" value=transid.to_string()/>
            {move || was_sent.get().then(|| view! { <StepUpField form/> })}
            <div class="buttons">{buttons.into_iter().collect_view()}</div>
        </PostForm>
    }
}

#[component]
fn Message(data: MessageView, form: FormState, deciding: FormState) -> impl IntoView {
    let MessageView { file, currency, text } = data;
    let (owner, transid, is_test) = (file.owner, file.record.transid, file.record.test);
    let is_unknown = file.record.status == MessageStatus::Unknown;
    let has_text = file.chars > 0;
    let text = match text {
        Some(text) if has_text => view! { <MessageText text/> }.into_any(),
        _ => view! {
            <p>{masked(file.chars)}</p>
            {has_text.then(|| view! { <ShowTextForm transid form/> })}
        }
        .into_any(),
    };
    view! {
        <Page title="Message" back=("/support/search", "Search")>
            <dl class="facts">
                <Fact term="Account"><MarkedEmail id=owner.account_id email=owner.email/></Fact>
                <Fact term="Application" class="key">{application_link(owner.reference)}</Fact>
                <Fact term="Carrier">{file.carrier.unwrap_or_else(|| "none".to_owned())}</Fact>
                {file.waits_for.map(|cause| view! { <Fact term="Waits for">{cause}</Fact> })}
            </dl>
            <MessageFacts record=file.record batches="/support/search?q="/>
            {is_unknown.then(|| view! { <Decision transid form=deciding/> })}
            <h2>"Text"</h2>
            <FormAlert form/>
            {text}
            <h2>"Timeline (UTC)"</h2>
            <Timeline timeline=file.timeline/>
            <h2>"Charge"</h2>
            <Charge charge=file.charge is_test currency/>
            <h2>"Segments"</h2>
            {segments(&file.segments)}
        </Page>
    }
}

fn segments(segments: &[SegmentRecord]) -> AnyView {
    let text = |text: &Option<String>| text.as_deref().unwrap_or("none").to_owned();
    Table::wide(segments)
        .amount("Segment", |segment| segment.segment)
        .column("Carrier", |segment| segment.carrier.clone())
        .styled("key", "Carrier message ID", move |segment| text(&segment.carrier_id))
        .state("Status", |segment| segment.status)
        .column("Error", move |segment| text(&segment.error))
        .amount("Submits", |segment| segment.submits)
        .time("Last (UTC)", |segment| segment.submitted_at)
        .in_region_or(
            "Segments",
            "No segment is recorded: the message wasn't submitted, or went to the sandbox.",
        )
}
