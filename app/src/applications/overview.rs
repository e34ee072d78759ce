//! `/applications/{reference}`: the overview of an application, and whether it can send now.

use domain::records::ApplicationRecord;
use domain::{Category, Reference, SenderStatus};
use leptos::prelude::*;

use super::alarms::{Alarms, ReadAlarms};
use super::application_view::{ApplicationView, LoadApplication};
use super::deposits::{Payment, how_to_pay};
use super::frame::ApplicationFrame;
use super::history::history;
use super::new_keys::NewKeys;
use super::quick_start::QuickStart;
use super::readiness::Readiness;
use super::scheduled::{CancelScheduled, Scheduled};
use super::shown_once::{TakeKeys, shown_once};
use super::{by_default, sender_in_use};
use crate::incidents::IncidentNotices;
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::signed_in;
use crate::problem::Problem;
use crate::ui::{DateTime, Fact, FormState, Loaded, StateMark, in_path, in_zone};

/// Requests activation by staff.
#[server(prefix = "/fn", endpoint = "request-activation")]
pub async fn request_activation(reference: Reference) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    Ok(service.applications().request_activation(account.id, reference).await?)
}

#[component]
pub fn ApplicationPage() -> impl IntoView {
    let reference = in_path("reference");
    let activate = FormState::new::<RequestActivation>("activation-alert");
    let mark_read = FormState::new::<ReadAlarms>("alarms-alert");
    let cancel = FormState::new::<CancelScheduled>("cancel-alert");
    let data = PageData::after([activate, mark_read, cancel], move || LoadApplication {
        reference: reference.get(),
    });
    let keys = PageData::new(move || TakeKeys { reference: reference.get() });
    let render = move |data| view! { <Application data keys activate mark_read cancel/> };
    view! { <Loaded data render/> }
}

#[component]
fn Application(
    data: ApplicationView,
    keys: PageData<Option<NewKeys>>,
    activate: FormState,
    mark_read: FormState,
    cancel: FormState,
) -> impl IntoView {
    let application = data.application.clone();
    let (reference, base_url) = (application.reference, data.base_url.clone());
    let sends = application.category == Category::Sms;
    let done = history(&data.history, &data.currency);
    let payment = Payment {
        instructions: data.payment_instructions.clone(),
        takes: data.deposit_time.clone(),
        local_price: data.local_price,
        currency: data.currency.clone(),
    };
    // The first call is shown only with the whole test key.
    let first_call = move || {
        let base_url = base_url.clone();
        Suspend::new(async move {
            let test_key = keys.get().await.ok().flatten().and_then(|keys| keys.test);
            test_key.map(|test_key| {
                view! { <QuickStart reference base_url test_key=Some(test_key)/> }
            })
        })
    };
    view! {
        <ApplicationFrame application=application.clone() at="Overview">
            <IncidentNotices notes=data.incidents.clone()/>
            <Alarms reference alarms=data.alarms.clone() form=mark_read/>
            {shown_once(keys)}
            {sends.then(|| view! { <Transition>{first_call}</Transition> })}
            <Readiness data=data.clone() activate/>
            <Overview
                sender_name=sender_name(&application, &data.default_sender)
                application
                currency=data.currency.clone()
            />
            <Scheduled reference scheduled=data.scheduled currency=data.currency form=cancel/>
            {sends
                .then(|| view! { <Deposits reference payment/> })}
            <h2 id="history">"History"</h2>
            {done}
        </ApplicationFrame>
    }
}

/// Returns the sender name in use, and the requested one.
fn sender_name(application: &ApplicationRecord, default: &str) -> String {
    let in_use = sender_in_use(application, &by_default(default));
    let Some(request) = &application.requested_sender else { return in_use };
    let state = match request.status {
        SenderStatus::Pending => "is being checked",
        SenderStatus::Rejected => "was rejected",
        SenderStatus::Accepted | SenderStatus::Replaced | SenderStatus::Withdrawn => return in_use,
    };
    format!("{in_use} ({} {state})", request.name)
}

/// An application's main facts.
#[component]
pub fn Overview(
    application: ApplicationRecord,
    currency: String,
    /// The sender name, as the reader should see it.
    sender_name: String,
) -> impl IntoView {
    view! {
        <dl class="facts">
            <Fact term="Status"><StateMark state=application.status/></Fact>
            <Fact term="Balance" class="figures">
                {format!("{} {currency}", application.balance.shown())}
            </Fact>
            <Fact term="Reference" class="key">{application.reference.to_string()}</Fact>
            <Fact term="Sender name">{sender_name}</Fact>
            <Fact term="Test balance" class="figures">
                {format!("{} {currency}", application.test_balance.shown())}
            </Fact>
            <Fact term=in_zone("Created (UTC)") class="figures">
                <DateTime at=application.created_at/>
            </Fact>
        </dl>
    }
}

#[component]
fn Deposits(reference: Reference, payment: Payment) -> impl IntoView {
    let slip = format!("/applications/{reference}/slip");
    view! {
        <h2 id="deposits">"Deposits"</h2>
        {how_to_pay(reference, &payment)}
        <p><a href=slip>"Print a deposit slip"</a></p>
    }
}
