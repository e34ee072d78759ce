//! `/applications/{reference}/sender`: an application's sender name, its requests, and the form for
//! a new request.

use domain::records::{ApplicationRecord, SenderRequestRecord};
use domain::support_hours::UsualTime;
use domain::{Category, Reference, SenderState, SenderStatus};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::frame::ApplicationFrame;
use super::new::sender_name_fault;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    DateTime, Field, FormState, Loaded, PostForm, StateMark, SubmitButton, Table, answered_within,
    in_path, in_zone,
};
#[cfg(feature = "ssr")]
use {
    super::application_view::owned, crate::portal_request::signed_in, crate::problem::Cause,
    domain::SenderName, domain::decision::Work,
};

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SenderNameView {
    application: ApplicationRecord,
    /// Newest first.
    requests: Vec<SenderRequestRecord>,
    /// How long a request usually takes.
    usual: Option<UsualTime>,
    /// The sender name of applications without one.
    default_sender: String,
}

/// Loads the sender name of one of the account's applications, and its requests.
#[server(prefix = "/fn", endpoint = "application-sender", input = GetUrl)]
pub async fn load_sender_name(reference: String) -> Result<SenderNameView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let requests =
        service.applications().sender_names_asked_for(account.id, application.reference).await?;
    Ok(SenderNameView {
        application,
        requests,
        usual: service.applications().usual_answer(Work::SenderNames).await?,
        default_sender: service.delivery().default_sender().to_owned(),
    })
}

fn is_pending(request: &SenderRequestRecord) -> bool {
    request.status == SenderStatus::Pending
}

/// Requests a sender name. Staff accept or reject it.
#[server(prefix = "/fn", endpoint = "request-sender-name")]
pub async fn request_sender_name(reference: Reference, sender: String) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("sender", &sender);
    let (current, account) = signed_in().await.map_err(keep)?;
    let name = named(&sender).map_err(keep)?;
    let asked =
        current.service().applications().request_sender_name(account.id, reference, &name).await;
    asked.map_err(|error| keep(error.into()))
}

#[cfg(feature = "ssr")]
fn named(sender: &str) -> Result<SenderName, Problem> {
    if sender.is_empty() {
        return Err(Cause::SenderNameMissing.into());
    }
    Ok(SenderName::parse(sender)?)
}

/// Withdraws the request for a sender name.
#[server(prefix = "/fn", endpoint = "withdraw-sender-name")]
pub async fn withdraw_sender_name(reference: Reference) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let withdrawn =
        current.service().applications().withdraw_sender_name(account.id, reference).await;
    Ok(withdrawn?)
}

#[component]
pub fn SenderNamePage() -> impl IntoView {
    let reference = in_path("reference");
    let form = FormState::new::<RequestSenderName>("sender-alert");
    let withdrawal = FormState::new::<WithdrawSenderName>("withdrawal-alert");
    let data =
        PageData::after([form, withdrawal], move || LoadSenderName { reference: reference.get() });
    view! { <Loaded data render=move |data| view! { <Content data form withdrawal/> }/> }
}

#[component]
fn Content(data: SenderNameView, form: FormState, withdrawal: FormState) -> impl IntoView {
    let SenderNameView { application, requests, usual, default_sender } = data;
    let reference = application.reference.to_string();
    let in_use = in_use(&application, &default_sender);
    let newest = application.requested_sender.clone();
    let may_withdraw =
        application.sender_state == SenderState::Rejected || requests.iter().any(is_pending);
    let withdrawing = may_withdraw.then(|| {
        let reference = reference.clone();
        view! {
            <PostForm form=withdrawal>
                <input type="hidden" name="reference" value=reference/>
                <SubmitButton label="Withdraw the request" form=withdrawal/>
            </PostForm>
        }
    });
    let replaced = match requests.iter().find(|request| is_pending(request)) {
        Some(waiting) => {
            format!(" Your request for {} is pending; a new request replaces it.", waiting.name)
        }
        None => String::new(),
    };
    let hint = format!("1 to 11 letters from A to Z and digits, without spaces.{replaced}");
    view! {
        <ApplicationFrame application at="Sender name">
            <h2>"Sender name"</h2>
            <p>{in_use}</p>
            {newest.map(|request| view! { <Request request usual/> })}
            {withdrawing}
            <p>
                "Choose the name of your company, brand or product. We reject a name that belongs to \
                 somebody else, and digits alone, because phones show them as a number. "
                {answered_within(usual)}
                " You can withdraw a request until it is accepted."
            </p>
            <PostForm form>
                <input type="hidden" name="reference" value=reference/>
                <Field label="Sender name" name="sender" hint check=sender_name_fault form/>
                <SubmitButton label="Request sender name" form/>
            </PostForm>
            <h2>"Requests"</h2>
            {earlier(&requests)}
        </ApplicationFrame>
    }
}

fn in_use(application: &ApplicationRecord, default: &str) -> String {
    match (application.sender_state, &application.sender_name) {
        _ if application.category != Category::Sms => {
            "An Electricity application sends nothing, so it needs no sender name.".to_owned()
        }
        (_, Some(name)) => format!("Messages are sent as {name}."),
        (SenderState::Pending | SenderState::Rejected, None) => "The application was created with \
            a sender name. It can send once we accept a name or you withdraw the request."
            .to_owned(),
        (_, None) => format!("Messages are sent as {default} (default)."),
    }
}

/// Lists every request, newest first, with the decision and its reason.
fn earlier(requests: &[SenderRequestRecord]) -> AnyView {
    Table::wide(requests)
        .time(in_zone("Requested (UTC)"), |request| request.requested_at)
        .column("Name", |request| request.name.clone())
        .state("Status", |request| request.status)
        .time(in_zone("Decided (UTC)"), |request| request.decided_at)
        .column("Reason", |request| request.reason.clone())
        .in_region_or("Requests", "No sender names requested yet.")
}

#[component]
fn Request(request: SenderRequestRecord, usual: Option<UsualTime>) -> impl IntoView {
    let words = match request.status {
        SenderStatus::Pending => "We are checking the name. You can't use it until we accept it.",
        SenderStatus::Rejected => "It was not accepted:",
        SenderStatus::Accepted | SenderStatus::Replaced | SenderStatus::Withdrawn => "",
    };
    view! {
        <p class="notice">
            <strong>{request.name}</strong>
            " "
            <StateMark state=request.status/>
            " · Requested "
            <DateTime at=request.requested_at with_zone=true/>
            ". "
            {words}
            " "
            {(request.status == SenderStatus::Pending).then(|| answered_within(usual))}
            {request.reason}
        </p>
    }
}
