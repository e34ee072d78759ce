//! `/applications`: the list of applications.

use domain::records::ApplicationRecord;
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::NO_SENDER_NAME;
use crate::client::read;
#[cfg(feature = "ssr")]
use crate::portal_request::signed_in;
use crate::problem::Problem;
use crate::ui::{Loaded, Page, StateMark};

/// What the page shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Applications {
    pub applications: Vec<ApplicationRecord>,
    pub currency: String,
}

/// The account's applications.
///
/// # Errors
/// When nobody is signed in, or the service fails.
#[server(prefix = "/fn", endpoint = "applications", input = GetUrl)]
pub async fn load_applications() -> Result<Applications, Problem> {
    let (current, account) = signed_in().await?;
    let applications = current.service().applications(account.id).await?;
    Ok(Applications {
        applications,
        currency: current.site().currency.clone(),
    })
}

#[component]
pub fn ApplicationsPage() -> impl IntoView {
    let data = Resource::new(|| (), |()| read(LoadApplications {}));
    view! { <Loaded data render=|data| view! { <List data/> }/> }
}

#[component]
fn List(data: Applications) -> impl IntoView {
    let Applications {
        applications,
        currency,
    } = data;
    let new =
        view! { <a class="button button-primary" href="/applications/new">"New application"</a> };
    view! {
        <Page title="My Applications" action=new.into_any()>
            {if applications.is_empty() {
                Either::Left(
                    view! {
                        <p class="empty">
                            "You have no application yet. An application has an API key, a balance \
                             and, if you like, a sender name; your system sends with its key."
                        </p>
                    },
                )
            } else {
                Either::Right(view! { <Table applications currency/> })
            }}
        </Page>
    }
}

#[component]
fn Table(applications: Vec<ApplicationRecord>, currency: String) -> impl IntoView {
    view! {
        <div class="table-scroll" tabindex="0" role="region" aria-label="Your applications">
            <table class="stacks">
                <thead>
                    <tr>
                        <th scope="col">"Category"</th>
                        <th scope="col">"Sender name"</th>
                        <th scope="col">"Status"</th>
                        <th scope="col" class="amount">
                            {format!("Balance ({currency})")}
                        </th>
                        <th scope="col">"Reference"</th>
                    </tr>
                </thead>
                <tbody>
                    {applications
                        .into_iter()
                        .map(|application| view! { <Row application/> })
                        .collect_view()}
                </tbody>
            </table>
        </div>
    }
}

#[component]
fn Row(application: ApplicationRecord) -> impl IntoView {
    let href = format!("/applications/{}", application.reference);
    view! {
        <tr>
            <td data-label="Category">
                <a href=href.clone()>{application.category.as_str()}</a>
            </td>
            <td data-label="Sender name">{sender_cell(&application)}</td>
            <td data-label="Status">
                <StateMark tone=application.status word=application.status.as_str()/>
            </td>
            <td data-label="Balance" class="amount">{application.balance.to_string()}</td>
            <td data-label="Reference" class="key">
                <a href=href>{application.reference.to_string()}</a>
            </td>
        </tr>
    }
}

/// The sender name in use, and the one that is asked for.
fn sender_cell(application: &ApplicationRecord) -> impl IntoView + use<> {
    let in_use = application.sender_name.clone();
    let asked = application.requested_sender.as_ref().map(|request| {
        let (tone, word, name) = (
            request.status,
            request.status.as_str(),
            request.name.clone(),
        );
        view! { <span class="asked">{name} " " <StateMark tone word/></span> }
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
