//! `/support/applications`: applications, those first whose activation is asked for.

use domain::application::StatusAction;
use domain::decision::{ApplicationList, StaffList};
use domain::records::{ApplicationRecord, Paged};
use domain::{ApplicationStatus, Reference};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use super::lists::{ListForm, OfferedReasons, ReasonField, SetStaffList};
use crate::client::call;
use crate::problem::Problem;
use crate::ui::{BUTTONS, FormAlert, FormState, Loaded, Moment, Page, PostForm, StateMark, Table};
#[cfg(feature = "ssr")]
use {crate::portal_request::staff, crate::problem::Cause, service::Actor};

/// How many applications a page of the list has.
#[cfg(feature = "ssr")]
const APPLICATIONS: i64 = 50;

/// What the page shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplicationsView {
    list: ApplicationList,
    applications: Paged<ApplicationRecord>,
    /// Reasons to suspend that are offered.
    reasons: Vec<String>,
    currency: String,
}

/// A page of applications, for staff.
///
/// # Errors
/// When nobody is signed in, whoever is signed in isn't staff, the cursor isn't one that was given
/// out, or the service fails.
#[server(prefix = "/fn", endpoint = "support-applications", input = GetUrl)]
pub async fn load_support_applications(
    #[server(default)] list: ApplicationList,
    #[server(default)] cursor: Option<String>,
) -> Result<ApplicationsView, Problem> {
    let (current, _) = staff().await?;
    let service = current.service();
    let found = service.application_list(list, cursor.as_deref(), APPLICATIONS);
    Ok(ApplicationsView {
        list,
        applications: found.await?,
        reasons: service.staff_list(StaffList::SuspendReasons).await?,
        currency: current.site().currency.clone(),
    })
}

/// Approves, suspends or reinstates an application.
///
/// # Errors
/// When nobody is signed in, whoever is signed in isn't staff, there is no such application, its
/// status doesn't allow it, a reason is missing or too long, or the service fails.
#[server(prefix = "/fn", endpoint = "change-application")]
pub async fn change_application(
    reference: Reference,
    action: String,
    #[server(default)] reason: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let (service, actor) = (current.service(), Actor::Account(account.id));
    match action.as_str() {
        APPROVE => service.approve(&actor, reference).await?,
        SUSPEND => service.suspend(&actor, reference, &reason).await?,
        REINSTATE => service.reinstate(&actor, reference).await?,
        _ => return Err(Cause::Unreadable.into()),
    };
    Ok(())
}

const APPROVE: &str = "approve";
const SUSPEND: &str = "suspend";
const REINSTATE: &str = "reinstate";

#[derive(Clone, Copy)]
struct Forms {
    change: FormState,
    reasons: FormState,
}

#[component]
pub fn SupportApplicationsPage() -> impl IntoView {
    let forms = Forms {
        change: FormState::new::<ChangeApplication>("application-alert"),
        reasons: FormState::new::<SetStaffList>("reasons-alert"),
    };
    let query = use_query_map();
    let asked = Memo::new(move |_| {
        query.with(|query| {
            let list = query
                .get("list")
                .and_then(|list| ApplicationList::parse(&list));
            (list.unwrap_or_default(), query.get("cursor"))
        })
    });
    let data = Resource::new(
        move || {
            let changes = (forms.change.accepted.get(), forms.reasons.accepted.get());
            (asked.get(), changes)
        },
        |((list, cursor), _)| call(LoadSupportApplications { list, cursor }),
    );
    view! { <Loaded data render=move |data| view! { <Applications data forms/> }/> }
}

#[component]
fn Applications(data: ApplicationsView, forms: Forms) -> impl IntoView {
    let ApplicationsView {
        list,
        applications,
        reasons,
        currency,
    } = data;
    let next = applications.next.map(|cursor| {
        let href = format!(
            "/support/applications?list={}&cursor={}",
            list.as_str(),
            leptos_router::location::Url::escape(&cursor)
        );
        view! {
            <p>
                <a href=href rel="next">
                    "More applications"
                </a>
            </p>
        }
    });
    view! {
        <Page title="Applications">
            <p class="back">
                <a href="/support">"Support"</a>
            </p>
            <Lists list/>
            <FormAlert form=forms.change/>
            <OfferedReasons list=StaffList::SuspendReasons reasons=reasons.clone()/>
            {listed(list, &applications.items, &currency, forms.change)}
            {next}
            <FormAlert form=forms.reasons/>
            <ListForm
                list=StaffList::SuspendReasons
                heading="Reasons to suspend"
                hint="A line each. They are offered above; the customer reads the one that is sent."
                lines=reasons
                form=forms.reasons
            />
        </Page>
    }
}

/// The links to the lists.
#[component]
fn Lists(list: ApplicationList) -> impl IntoView {
    let links = ApplicationList::ALL.map(|each| {
        let href = format!("/support/applications?list={}", each.as_str());
        let current = (each == list).then_some("page");
        view! {
            <li>
                <a href=href aria-current=current>
                    {title(each)}
                </a>
            </li>
        }
    });
    view! {
        <nav class="tabs" aria-label="Lists of applications">
            <ul>{links.into_iter().collect_view()}</ul>
        </nav>
    }
}

const fn title(list: ApplicationList) -> &'static str {
    match list {
        ApplicationList::Waiting => "Activation requested",
        ApplicationList::Pending => "Pending",
        ApplicationList::Active => "Active",
        ApplicationList::Suspended => "Suspended",
        ApplicationList::All => "All",
    }
}

fn listed(
    list: ApplicationList,
    applications: &[ApplicationRecord],
    currency: &str,
    form: FormState,
) -> AnyView {
    let none = match list {
        ApplicationList::Waiting => "No application waits for activation.",
        _ => "There is no such application.",
    };
    Table::wide(applications)
        .styled("key", "Reference", |application| {
            application.reference.to_string()
        })
        .column("Account", |application| application.email.clone())
        .column("Category", |application| application.category.as_str())
        .column("Sender name", |application| {
            application
                .sender_name
                .as_deref()
                .unwrap_or("none")
                .to_owned()
        })
        .column("Status", |application| {
            view! { <StateMark state=application.status/> }
        })
        .styled("figures", "Requested (UTC)", |application| {
            application
                .activation_requested_at
                .map(|at| view! { <Moment at/> })
        })
        .money("Balance", currency, |application| application.balance)
        .styled(BUTTONS, "Action", move |application| {
            actions(application, form)
        })
        .in_region_or("Applications", none)
}

/// What can be done to an application in its status.
fn actions(application: &ApplicationRecord, form: FormState) -> impl IntoView + use<> {
    let (status, reference) = (application.status, application.reference);
    let can = |action| status.after(action, ApplicationStatus::Pending).is_some();
    view! {
        {can(StatusAction::Approve)
            .then(|| view! { <Change reference action=APPROVE label="Approve" form/> })}
        {can(StatusAction::Reinstate)
            .then(|| view! { <Change reference action=REINSTATE label="Reinstate" form/> })}
        {can(StatusAction::Suspend)
            .then(|| view! { <Change reference action=SUSPEND label="Suspend" form/> })}
    }
}

#[component]
fn Change(
    reference: Reference,
    action: &'static str,
    label: &'static str,
    form: FormState,
) -> impl IntoView {
    view! {
        <PostForm form inline=true>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <input type="hidden" name="action" value=action/>
            {(action == SUSPEND).then(|| view! { <ReasonField list=StaffList::SuspendReasons/> })}
            <button type="submit" class="button">
                {label}
            </button>
        </PostForm>
    }
}
