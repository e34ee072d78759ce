//! `/applications`: the list of applications.

use domain::Category;
use domain::records::ApplicationRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::account_overview::{AccountOverview, account_overview};
#[cfg(feature = "hydrate")]
use super::first_steps::follow_steps;
use super::first_steps::{FirstSteps, first_steps};
use super::next_step::{NextStep, next_step};
use super::{by_default, sender_in_use};
use crate::account::codes_left;
use crate::incidents::{IncidentNote, IncidentNotices};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{AcceptedNotice, Loaded, Page, StateMark, Table};
#[cfg(feature = "ssr")]
use crate::{incidents::incident_notes, portal_request::signed_in};

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplicationsView {
    pub applications: Vec<ApplicationRecord>,
    pub currency: String,
    /// The sender name that recipients see if an application has none.
    pub default_sender: String,
    /// The condition that keeps the SMS application from sending.
    pub next_step: Option<NextStep>,
    pub first_steps: FirstSteps,
    /// `None` until the first steps are done.
    pub overview: Option<AccountOverview>,
    pub incidents: Vec<IncidentNote>,
    /// The number of unused recovery codes, if the account has a second factor.
    pub recovery_codes_left: Option<i64>,
}

/// Loads the account's applications.
#[server(prefix = "/fn", endpoint = "applications", input = GetUrl)]
pub async fn load_applications() -> Result<ApplicationsView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let applications = service.applications().of_account(account.id).await?;
    let first_steps = FirstSteps::find(service, account.id, &applications).await?;
    let overview = if first_steps.are_done() {
        let zone = current.zone(current.browser_zone()).await;
        AccountOverview::find(service, account.id, &applications, &zone).await?
    } else {
        None
    };
    let factor =
        if account.second_factor { service.accounts().factor(account.id).await? } else { None };
    Ok(ApplicationsView {
        recovery_codes_left: factor.map(|factor| factor.recovery_codes),
        next_step: NextStep::find(service, &applications).await?,
        first_steps,
        overview,
        applications,
        currency: current.site().currency.clone(),
        default_sender: service.delivery().default_sender().to_owned(),
        incidents: incident_notes(service).await?,
    })
}

#[component]
pub fn ApplicationsPage() -> impl IntoView {
    let data = PageData::new(|| LoadApplications {});
    let render = move |found: ApplicationsView| {
        #[cfg(feature = "hydrate")]
        follow_steps(&found.first_steps, data);
        view! { <List data=found/> }
    };
    view! { <Loaded data render/> }
}

#[component]
fn List(data: ApplicationsView) -> impl IntoView {
    let has = |category| (data.applications.iter()).any(|one| one.category == category);
    let new = (!Category::ALL.into_iter().all(has)).then(|| {
        // A page has one main action: the next step, if there is one.
        let class = if data.next_step.is_some() { "button" } else { "button button-primary" };
        view! { <a class=class href="/applications/new">"New application"</a> }
    });
    let one_each = new.is_some().then(|| {
        view! {
            <p class="fine">
                "An account has at most one application of each category: SMS, and Electricity, \
                 which sends no messages."
            </p>
        }
    });
    let overview = (data.overview.as_ref())
        .map(|found| account_overview(found, &data.applications, &data.currency));
    view! {
        <Page title="My Applications" action=new.into_any()>
            <AcceptedNotice parameter="deleted" sentence="The application is deleted."/>
            <IncidentNotices notes=data.incidents.clone()/>
            {data.recovery_codes_left.and_then(codes_left)}
            {data.next_step.as_ref().map(next_step)}
            {first_steps(&data.first_steps)}
            {listed(&data)}
            {one_each}
            {overview}
        </Page>
    }
}

fn listed(data: &ApplicationsView) -> AnyView {
    Table::wide(&data.applications)
        .with_links()
        .column("Name", ApplicationRecord::display_name)
        .column("Category", |application| link(application, application.category.to_string()))
        .column("Sender name", |application| {
            sender_name(application, &by_default(&data.default_sender))
        })
        .state("Status", |application| application.status)
        .money("Balance", &data.currency, |application| application.balance.shown())
        .styled("key", "Reference", |application| {
            link(application, application.reference.to_string())
        })
        .in_region_or(
            "Your applications",
            "You have no application yet. An application has an API key, a balance and, if you \
             like, a sender name; your system sends with its key.",
        )
}

fn link(application: &ApplicationRecord, text: String) -> impl IntoView + use<> {
    view! {
        <a class="row-link" href=format!("/applications/{}", application.reference)>{text}</a>
    }
}

/// Shows the sender name in use and the requested one.
fn sender_name(application: &ApplicationRecord, default: &str) -> impl IntoView + use<> {
    let asked = application.requested_sender.as_ref().map(|request| {
        let (name, status) = (request.name.clone(), request.status);
        view! { <span class="asked">{name} " " <StateMark state=status/></span> }
    });
    let in_use = sender_in_use(application, default);
    let class = application.sender_name.is_none().then_some("faint");
    view! {
        <span class=class>{in_use}</span>
        " "
        {asked}
    }
}
