//! Data that the pages of an application share.

use domain::history::HistoryEntry;
use domain::readiness::Blocker;
use domain::records::{AlarmRecord, ApplicationRecord, KeyRecord, ScheduledCount};
use domain::support_hours::UsualTime;
use domain::{KeyKind, Money, Timestamp};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::incidents::IncidentNote;
use crate::problem::Problem;
#[cfg(feature = "ssr")]
use {
    crate::incidents::incident_notes, crate::portal_request::signed_in, crate::problem::Cause,
    domain::Reference, domain::decision::Work, domain::records::ApiCallRecord, service::Service,
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplicationView {
    pub application: ApplicationRecord,
    /// The reasons why it can't send now.
    pub blockers: Vec<Blocker>,
    /// The price of a page to a local number.
    pub local_price: Money,
    pub currency: String,
    pub base_url: String,
    /// The payee and how to pay, as lines of text.
    pub payment_instructions: Option<String>,
    /// How long a bank transfer takes.
    pub deposit_time: Option<String>,
    /// The sender name that recipients see if the application has none.
    pub default_sender: String,
    /// How long an activation usually takes, if one was requested.
    pub activation_usual: Option<UsualTime>,
    /// How long a sender name usually takes, if one is pending.
    pub sender_usual: Option<UsualTime>,
    /// The keys whose creation is recorded.
    pub keys: Vec<KeyRecord>,
    /// The recent API calls with a replaced key, one entry per kind of key.
    pub replaced_calls: Vec<ReplacedKeyCalls>,
    /// The application's history, newest first.
    pub history: Vec<HistoryEntry>,
    pub incidents: Vec<IncidentNote>,
    /// The alarms that the owner hasn't marked as read, newest first.
    pub alarms: Vec<AlarmRecord>,
    /// The scheduled messages of the live key.
    pub scheduled: ScheduledCount,
}

/// The recent API calls with a replaced key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplacedKeyCalls {
    pub kind: KeyKind,
    pub count: usize,
    /// The time of the most recent call.
    pub at: Timestamp,
    /// The client address of the most recent call.
    pub from: Option<String>,
}

/// Loads one of the account's applications.
#[server(prefix = "/fn", endpoint = "application", input = GetUrl)]
pub async fn load_application(reference: String) -> Result<ApplicationView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let site = current.site();
    let local_price = service.money().local_price().await?;
    let blockers = service.applications().blockers(&application).await?;
    let usual = async |work, blocker| {
        if blockers.contains(&blocker) {
            service.applications().usual_answer(work).await
        } else {
            Ok(None)
        }
    };
    let access =
        service.webhooks().access_of(account.id, application.reference, KeyKind::Live).await?;
    Ok(ApplicationView {
        scheduled: service.messages().scheduled(&access).await?,
        activation_usual: usual(Work::Activations, Blocker::ActivationWaits).await?,
        sender_usual: usual(Work::SenderNames, Blocker::SenderNameWaits).await?,
        incidents: incident_notes(service).await?,
        alarms: service.applications().alarms(account.id, application.reference).await?,
        keys: service.applications().key_records(account.id, application.reference).await?,
        replaced_calls: replaced_calls(
            service.applications().api_calls(account.id, application.reference).await?,
        ),
        history: service
            .applications()
            .application_history(account.id, application.reference)
            .await?,
        default_sender: service.delivery().default_sender().to_owned(),
        currency: site.currency.clone(),
        payment_instructions: site.payment_instructions.clone(),
        deposit_time: site.deposit_time.clone(),
        base_url: site.base_url.clone(),
        application,
        blockers,
        local_price,
    })
}

/// Returns the calls with a replaced key. `calls` are newest first.
#[cfg(feature = "ssr")]
fn replaced_calls(calls: Vec<ApiCallRecord>) -> Vec<ReplacedKeyCalls> {
    let mut found: Vec<ReplacedKeyCalls> = Vec::new();
    for call in calls.into_iter().filter(ApiCallRecord::had_replaced_key) {
        match found.iter_mut().find(|found| found.kind == call.kind) {
            Some(found) => found.count += 1,
            None => found.push(ReplacedKeyCalls {
                kind: call.kind,
                count: 1,
                at: call.at,
                from: call.from,
            }),
        }
    }
    found
}

/// Returns the account's application with the reference from an address.
#[cfg(feature = "ssr")]
pub async fn owned(
    service: &Service,
    account_id: i64,
    reference: &str,
) -> Result<ApplicationRecord, Problem> {
    let reference = Reference::parse(reference)?;
    let found = service.applications().application(account_id, reference).await?;
    Ok(found.ok_or(Cause::NotFound)?)
}
