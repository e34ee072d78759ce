//! The banner on the list of applications: it says what keeps the SMS application from sending, and
//! what to do about it.

use domain::ApplicationStatus;
use domain::readiness::Blocker;
use domain::records::ApplicationRecord;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use {crate::problem::Problem, domain::Category, service::Service};

/// A step that the customer takes, or waits for, before an application can send.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NextStep {
    application: ApplicationRecord,
    blocker: Blocker,
}

#[cfg(feature = "ssr")]
impl NextStep {
    /// Returns the next step for the SMS application among these, or `None` if it can send or there
    /// is none. A step of the customer comes before a step of staff.
    pub async fn find(
        service: &Service,
        applications: &[ApplicationRecord],
    ) -> Result<Option<Self>, Problem> {
        let sms = applications.iter().find(|one| one.category == Category::Sms);
        let Some(application) = sms else {
            return Ok(None);
        };
        let found = service.applications().blockers(application).await?;
        let for_customer = found.iter().find(|blocker| blocker.is_for_customer());
        let blocker = match found.first() {
            Some(first @ (Blocker::AccountDisabled | Blocker::Suspended)) => Some(*first),
            first => for_customer.or(first).copied(),
        };
        Ok(blocker.map(|blocker| Self { application: application.clone(), blocker }))
    }
}

impl NextStep {
    /// Whether staff must also approve the application.
    fn waits_for_activation(&self) -> bool {
        let ApplicationRecord { status, activation_requested_at, .. } = &self.application;
        *status == ApplicationStatus::Pending && activation_requested_at.is_some()
    }

    /// Returns the sentence, and the link to the page where the step is taken.
    fn words(&self) -> (String, &'static str, &'static str) {
        let name = self.application.display_name();
        let because = |why: &str| format!("{name} can't send yet: {why}");
        match self.blocker {
            Blocker::ActivationNotRequested => {
                (because("it isn't activated."), "#readiness", "Ask for activation")
            }
            Blocker::ActivationWaits => {
                (because("we are checking your request for activation."), "", "See its progress")
            }
            Blocker::Suspended => {
                let reason = self.application.suspend_reason.as_deref().unwrap_or("none given");
                let words = format!("{name} is suspended and can't send. Reason: {reason}");
                (words, "", "See what is affected")
            }
            Blocker::SenderNameWaits => {
                (because("we are checking its sender name."), "/sender", "See the request")
            }
            Blocker::SenderNameRejected => {
                (because("its sender name wasn't accepted."), "/sender", "Choose another name")
            }
            Blocker::Balance => {
                let why = if self.waits_for_activation() {
                    "its balance doesn't cover a message, and we are checking your request for \
                     activation."
                } else {
                    "its balance doesn't cover a message."
                };
                let words = format!("{name} can't send: {why}");
                (words, "#deposits", "Make a deposit")
            }
            Blocker::SpendCap(_) => {
                let words = format!(
                    "{name} can't send any more today: its limit on the day's spend is used up."
                );
                (words, "/settings#limits", "See the limit")
            }
            Blocker::AccountDisabled => {
                (format!("{name} can't send: your account is disabled."), "", "See the application")
            }
            Blocker::NoCarrier => (
                "No carrier accepts messages right now. Messages wait for up to 48 hours, and you \
                 aren't charged for a message that no carrier accepts."
                    .to_owned(),
                "",
                "See what is affected",
            ),
            Blocker::Category => (String::new(), "", ""),
        }
    }
}

/// Renders the banner.
pub fn next_step(step: &NextStep) -> impl IntoView + use<> {
    let (sentence, page, link) = step.words();
    let href = format!("/applications/{}{page}", step.application.reference);
    view! {
        <section class="notice next-step" aria-label="Next step">
            <p>{sentence}</p>
            <a class="button button-primary" href=href>{link}</a>
        </section>
    }
}
