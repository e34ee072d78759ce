//! `/applications/{reference}`: one application with all that belongs to it.

#[cfg(feature = "ssr")]
use domain::SenderStatus;
use domain::records::{ApplicationRecord, Paged, StatementLine};
use domain::{ApplicationStatus, Category, Reference};
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::{use_params_map, use_query_map};
use serde::{Deserialize, Serialize};

use super::NO_SENDER_NAME;
use super::keys::{KeysShown, ReplaceKey, ReplaceKeys, TakeKeys};
use super::lost_answer::{LostAnswerSection, SetLostAnswer};
use super::new_keys::NewKeys;
use super::notices::{NoticesSection, SetNotices};
use super::quick_start::QuickStart;
use super::sender::{RequestSenderName, SenderSection};
use super::statement::statement;
use crate::client::call;
use crate::problem::Problem;
use crate::ui::{
    Fact, FormAlert, FormState, Loaded, Moment, Page, PostForm, StateMark, SubmitButton,
    answered_within,
};
#[cfg(feature = "ssr")]
use {crate::portal_request::signed_in, crate::problem::Cause, domain::decision::Work};

/// How many lines of the statement one page has.
#[cfg(feature = "ssr")]
const STATEMENT_LINES: i64 = 25;

/// What the page shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplicationView {
    pub application: ApplicationRecord,
    pub statement: Paged<StatementLine>,
    pub currency: String,
    pub base_url: String,
    /// Whom to pay, and how; lines of text.
    pub payment_instructions: Option<String>,
    /// How long an activation that was requested usually takes.
    pub activation_ms: Option<i64>,
    /// How long a sender name that is pending usually takes.
    pub sender_ms: Option<i64>,
}

/// An application of the account with a page of its statement.
///
/// # Errors
/// When nobody is signed in, the application isn't the account's, the cursor isn't one that was
/// given out, or the service fails.
#[server(prefix = "/fn", endpoint = "application", input = GetUrl)]
pub async fn load_application(
    reference: String,
    #[server(default)] cursor: Option<String>,
) -> Result<ApplicationView, Problem> {
    let (current, account) = signed_in().await?;
    let reference = Reference::parse(&reference)?;
    let service = current.service();
    let found = service.application(account.id, reference).await?;
    let application = found.ok_or(Cause::NotFound)?;
    let statement = service
        .statement(account.id, reference, cursor.as_deref(), STATEMENT_LINES)
        .await?;
    let site = current.site();
    let waits = application.status == ApplicationStatus::Pending
        && application.activation_requested_at.is_some();
    let asked = application.requested_sender.as_ref();
    let asks = asked.is_some_and(|request| request.status == SenderStatus::Pending);
    let usual = async |work, is_waiting| {
        if is_waiting {
            service.usual_answer_ms(work).await
        } else {
            Ok(None)
        }
    };
    Ok(ApplicationView {
        activation_ms: usual(Work::Activations, waits).await?,
        sender_ms: usual(Work::SenderNames, asks).await?,
        application,
        statement,
        currency: site.currency.clone(),
        payment_instructions: site.payment_instructions.clone(),
        base_url: site.base_url.clone(),
    })
}

/// Asks for the application to be activated; staff do it.
///
/// # Errors
/// When nobody is signed in, the application isn't the account's or isn't Pending, or the service
/// fails.
#[server(prefix = "/fn", endpoint = "request-activation")]
pub async fn request_activation(reference: Reference) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    Ok(service.request_activation(account.id, reference).await?)
}

/// The page's forms.
#[derive(Clone, Copy)]
struct Forms {
    activate: FormState,
    sender: FormState,
    replace: FormState,
    lost_answer: FormState,
    notices: FormState,
}

#[component]
pub fn ApplicationPage() -> impl IntoView {
    let params = use_params_map();
    let query = use_query_map();
    let reference = Memo::new(move |_| {
        params
            .with(|params| params.get("reference"))
            .unwrap_or_default()
    });
    let cursor = Memo::new(move |_| query.with(|query| query.get("cursor")));
    let forms = Forms {
        activate: FormState::new::<RequestActivation>("activation-alert"),
        sender: FormState::new::<RequestSenderName>("sender-alert"),
        replace: FormState::new::<ReplaceKey>("keys-alert"),
        lost_answer: FormState::new::<SetLostAnswer>("lost-answer-alert"),
        notices: FormState::new::<SetNotices>("notices-alert"),
    };
    let data = Resource::new(
        move || {
            let changes = (
                forms.activate.accepted.get(),
                forms.sender.accepted.get(),
                forms.lost_answer.accepted.get(),
                forms.notices.accepted.get(),
            );
            (reference.get(), cursor.get(), changes)
        },
        |(reference, cursor, _)| call(LoadApplication { reference, cursor }),
    );
    let keys = Resource::new(
        move || (reference.get(), forms.replace.accepted.get()),
        |(reference, _)| call(TakeKeys { reference }),
    );
    let render = move |data| view! { <Application data keys forms/> };
    view! { <Loaded data render/> }
}

#[component]
fn Application(
    data: ApplicationView,
    keys: Resource<Result<Option<NewKeys>, Problem>>,
    forms: Forms,
) -> impl IntoView {
    let application = data.application;
    let reference = application.reference;
    let is_sms = application.category == Category::Sms;
    let in_force = application.lost_answer;
    let title = match &application.sender_name {
        Some(name) => format!("{} application {name}", application.category),
        None => format!("{} application", application.category),
    };
    let new_keys = move || {
        Suspend::new(async move {
            let keys = keys.await.ok().flatten();
            keys.map(|keys| view! { <KeysShown keys/> })
        })
    };
    let quick_start = move || {
        let base_url = data.base_url.clone();
        Suspend::new(async move {
            let test_key = keys.await.ok().flatten().and_then(|keys| keys.test);
            view! { <QuickStart reference base_url test_key/> }
        })
    };

    view! {
        <Page title>
            <Transition>{new_keys}</Transition>
            <Overview application=application.clone() currency=data.currency.clone()/>
            {standing(&application, data.activation_ms, forms.activate)}
            <Deposits reference instructions=data.payment_instructions/>
            {statement(reference, data.statement, &data.currency)}
            <NoticesSection
                application=application.clone()
                currency=data.currency.clone()
                form=forms.notices
            />
            <div class="pair">
                <SenderSection application usual_ms=data.sender_ms form=forms.sender/>
                <ReplaceKeys reference form=forms.replace/>
            </div>
            {is_sms
                .then(|| {
                    view! {
                        <LostAnswerSection reference in_force form=forms.lost_answer/>
                        <Transition>{quick_start}</Transition>
                    }
                })}
        </Page>
    }
}

#[component]
fn Overview(application: ApplicationRecord, currency: String) -> impl IntoView {
    let sender_name = application.sender_name.as_deref();
    let sender_name = sender_name.unwrap_or(NO_SENDER_NAME).to_owned();
    view! {
        <dl class="facts">
            <Fact term="Status"><StateMark state=application.status/></Fact>
            <Fact term="Balance" class="figures">
                {format!("{} {currency}", application.balance)}
            </Fact>
            <Fact term="Reference" class="key">{application.reference.to_string()}</Fact>
            <Fact term="Sender name">{sender_name}</Fact>
            <Fact term="Test balance" class="figures">
                {application.test_balance.to_string()}
            </Fact>
            <Fact term="Created (UTC)" class="figures"><Moment at=application.created_at/></Fact>
        </dl>
    }
}

/// What the status means for the customer, and what to do about it.
fn standing(application: &ApplicationRecord, usual_ms: Option<i64>, form: FormState) -> AnyView {
    match application.status {
        ApplicationStatus::Active => ().into_any(),
        ApplicationStatus::Suspended => {
            let reason = application.suspend_reason.as_deref();
            view! {
                <p class="notice">
                    "The API key sends nothing while the application is suspended. Reason: "
                    {reason.unwrap_or("none given").to_owned()}
                </p>
            }
            .into_any()
        }
        ApplicationStatus::Pending => activation(application, usual_ms, form).into_any(),
    }
}

fn activation(
    application: &ApplicationRecord,
    usual_ms: Option<i64>,
    form: FormState,
) -> impl IntoView + use<> {
    let reference = application.reference.to_string();
    let next = match application.activation_requested_at {
        Some(at) => Either::Left(view! {
            <p>"You requested activation " <Moment at/> ". " {answered_within(usual_ms)}</p>
        }),
        None => Either::Right(view! {
            <PostForm form inline=true>
                <input type="hidden" name="reference" value=reference/>
                <SubmitButton label="Request activation" form primary=true/>
            </PostForm>
        }),
    };
    view! {
        <div class="notice">
            <p>
                "The API key sends nothing until the application is activated. The test key works \
                 already."
            </p>
            <FormAlert form/>
            {next}
        </div>
    }
}

#[component]
fn Deposits(reference: Reference, instructions: Option<String>) -> impl IntoView {
    let lines = instructions.map(|text| {
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let lines = lines.into_iter().map(|line| view! { <li>{line}</li> });
        view! { <ul>{lines.collect_view()}</ul> }
    });
    view! {
        <h2 id="deposits">"Deposits"</h2>
        {lines}
        <p>
            "Pay in by bank transfer and write "
            <strong class="key">{reference.to_string()}</strong>
            " as the payment's reference. The amount is added to the balance when it has arrived. \
             Deposits are not paid out again."
        </p>
    }
}
