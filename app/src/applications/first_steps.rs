//! The first steps of a new customer, up to the first message.

use domain::Reference;
use domain::first_steps::{Step, StepState};
use domain::support_hours::UsualTime;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::ui::answered_within;
#[cfg(feature = "ssr")]
use {
    crate::problem::Problem, domain::Category, domain::decision::Work,
    domain::records::ApplicationRecord, service::Service,
};

/// The path of the server-sent events with the first steps.
pub const FIRST_STEPS_EVENTS_PATH: &str = "/applications/events";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FirstSteps {
    /// Empty once a message was sent.
    steps: Vec<(Step, StepState)>,
    /// The account's SMS application.
    reference: Option<Reference>,
    /// How long an activation usually takes, if one is pending.
    activation_usual: Option<UsualTime>,
    /// How long a sender name usually takes, if one is pending.
    sender_usual: Option<UsualTime>,
}

#[cfg(feature = "ssr")]
impl FirstSteps {
    /// Returns the progress of the account with these applications.
    pub async fn find(
        service: &Service,
        account_id: i64,
        applications: &[ApplicationRecord],
    ) -> Result<Self, Problem> {
        let steps = service.applications().first_steps_of(account_id, applications).await?;
        let usual = async |work, step| {
            if steps.contains(&(step, StepState::Waits)) {
                service.applications().usual_answer(work).await
            } else {
                Ok(None)
            }
        };
        let mut applications = applications.iter();
        let sms = applications.find(|application| application.category == Category::Sms);
        Ok(Self {
            reference: sms.map(|application| application.reference),
            activation_usual: usual(Work::Activations, Step::RequestActivation).await?,
            sender_usual: usual(Work::SenderNames, Step::AskForSenderName).await?,
            steps,
        })
    }

    /// Whether the first message was sent.
    pub const fn are_done(&self) -> bool {
        self.steps.is_empty()
    }
}

/// Reloads the page when the customer's systems or staff complete a step.
#[cfg(feature = "hydrate")]
pub fn follow_steps<T>(data: &FirstSteps, page: crate::page_data::PageData<T>)
where
    T: Clone + Send + Sync + Serialize + serde::de::DeserializeOwned + 'static,
{
    if data.steps.is_empty() {
        return;
    }
    let known = data.steps.clone();
    crate::ui::follow_by(
        FIRST_STEPS_EVENTS_PATH,
        |steps: &Vec<(Step, StepState)>| !steps.is_empty(),
        move |steps| {
            // The reloaded page follows the events again.
            if steps != known {
                page.load_again();
            }
        },
    );
}

/// Lists the steps, each with who has to act. Renders nothing once all steps are done.
pub fn first_steps(data: &FirstSteps) -> impl IntoView + use<> {
    if data.steps.is_empty() {
        return ().into_any();
    }
    let items = (data.steps.iter()).map(|(step, state)| item(data, *step, *state)).collect_view();
    view! {
        <section class="panel" aria-labelledby="first-steps">
            <h2 id="first-steps">"First steps"</h2>
            <ol class="checks">{items}</ol>
        </section>
    }
    .into_any()
}

fn item(data: &FirstSteps, step: Step, state: StepState) -> impl IntoView + use<> {
    let (class, mark, who) = match state {
        StepState::Done => ("check check-met", "Done: ", String::new()),
        StepState::Open => ("check check-open", "To do: ", String::new()),
        StepState::Optional => ("check check-later", "", " (optional)".to_owned()),
        StepState::Waits => {
            let usual = match step {
                Step::RequestActivation => data.activation_usual,
                _ => data.sender_usual,
            };
            let words = format!(": your request is waiting for us. {}", answered_within(usual));
            ("check check-waits", "Waits: ", words)
        }
        StepState::Later => ("check check-later", "Later: ", String::new()),
    };
    let (name, page) = named(step);
    let can_act = matches!(state, StepState::Open | StepState::Optional);
    let href = can_act.then(|| match (page, data.reference) {
        (Page::Of(page), Some(reference)) => Some(format!("/applications/{reference}{page}")),
        (Page::At(address), _) => Some(address.to_owned()),
        (Page::Of(_), None) => None,
    });
    let name = match href.flatten() {
        Some(href) => view! { <a href=href>{name}</a> }.into_any(),
        None => name.into_any(),
    };
    view! {
        <li class=class>
            <span class="visually-hidden">{mark}</span>
            {name}
            {who}
        </li>
    }
}

/// The page on which a step is done.
#[derive(Clone, Copy)]
enum Page {
    At(&'static str),
    /// A page of the application, by the end of its path.
    Of(&'static str),
}

const fn named(step: Step) -> (&'static str, Page) {
    match step {
        Step::ConfirmEmail => ("Confirm your email", Page::At("/applications/new")),
        Step::CreateApplication => ("Create an SMS application", Page::At("/applications/new")),
        Step::TryTestKey => ("Try the test key", Page::Of("/start")),
        Step::AskForSenderName => ("Ask for a sender name", Page::Of("/sender")),
        Step::RequestActivation => ("Ask for activation", Page::Of("#readiness")),
        Step::MakeDeposit => ("Make a deposit", Page::Of("#deposits")),
        Step::SendFirstMessage => ("Send the first message", Page::Of("/start")),
    }
}
