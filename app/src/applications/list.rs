//! `/applications`: the list of applications.

use domain::Category;
use domain::records::ApplicationRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::NO_SENDER_NAME;
use super::account_overview::{AccountOverview, account_overview};
#[cfg(feature = "hydrate")]
use super::first_steps::follow_steps;
use super::first_steps::{FirstSteps, first_steps};
use crate::incidents::{IncidentNote, IncidentNotices};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{Loaded, Page, StateMark, Table};
#[cfg(feature = "ssr")]
use crate::{incidents::incident_notes, portal_request::signed_in};

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplicationsView {
    pub applications: Vec<ApplicationRecord>,
    pub currency: String,
    pub first_steps: FirstSteps,
    /// `None` until the first steps are done.
    pub overview: Option<AccountOverview>,
    pub incidents: Vec<IncidentNote>,
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
    Ok(ApplicationsView {
        first_steps,
        overview,
        applications,
        currency: current.site().currency.clone(),
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
        view! { <a class="button button-primary" href="/applications/new">"New application"</a> }
    });
    let overview = (data.overview.as_ref())
        .map(|found| account_overview(found, &data.applications, &data.currency));
    view! {
        <Page title="My Applications" action=new.into_any()>
            <IncidentNotices notes=data.incidents.clone()/>
            {first_steps(&data.first_steps)}
            {listed(&data)}
            {overview}
        </Page>
    }
}

fn listed(data: &ApplicationsView) -> AnyView {
    Table::wide(&data.applications)
        .column("Category", |application| link(application, application.category.to_string()))
        .column("Sender name", sender_name)
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
    view! { <a href=format!("/applications/{}", application.reference)>{text}</a> }
}

/// Shows the sender name in use and the requested one.
fn sender_name(application: &ApplicationRecord) -> impl IntoView + use<> {
    let in_use = application.sender_name.clone();
    let asked = application.requested_sender.as_ref().map(|request| {
        let (name, status) = (request.name.clone(), request.status);
        view! { <span class="asked">{name} " " <StateMark state=status/></span> }
    });
    let in_use = match (in_use, &asked) {
        (Some(name), _) => view! { <span>{name}</span> }.into_any(),
        (None, None) => view! { <span class="faint">{NO_SENDER_NAME}</span> }.into_any(),
        (None, Some(_)) => ().into_any(),
    };
    view! {
        {in_use}
        " "
        {asked}
    }
}
