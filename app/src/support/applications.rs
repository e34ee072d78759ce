//! `/support/applications`: lists of applications. The first list holds the activation requests.

use domain::application::StatusAction;
use domain::decision::{ApplicationList, CaseKind, StaffList, Viewer};
use domain::records::{ApplicationRecord, Paged};
use domain::{ApplicationStatus, Category, DeskAct};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::confirm::{ActOn, confirm_button};
use super::desk::{CaseForms, act_form};
use super::links::application_link;
use super::lists::{ListForm, REASONS_HINT};
use super::marked_email::MarkedEmail;
use super::viewers::{followed, others};
use crate::applications::sender_for_staff;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    BUTTONS, FormAlert, FormState, Loaded, Page, State, Table, next_link, parameter, tabs,
};
#[cfg(feature = "ssr")]
use {super::desk::own_email, super::viewers::view, crate::portal_request::staff};

/// The number of applications on a page.
#[cfg(feature = "ssr")]
const APPLICATIONS: i64 = 50;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplicationsView {
    list: ApplicationList,
    applications: Paged<ApplicationRecord>,
    /// Other members of staff who are viewing the applications that wait for activation.
    viewers: Vec<Viewer>,
    /// Suggested reasons to suspend an application.
    reasons: Vec<String>,
    /// The email of the reader, if they can't favour their own applications.
    own: Option<String>,
    currency: String,
}

/// Loads a page of applications for staff.
#[server(prefix = "/fn", endpoint = "support-applications", input = GetUrl)]
pub async fn load_support_applications(
    #[server(default)] list: ApplicationList,
    #[server(default)] cursor: Option<String>,
) -> Result<ApplicationsView, Problem> {
    let (current, account) = staff().await?;
    let service = current.service();
    let applications = service.applications();
    let found = applications.application_list(list, cursor.as_deref(), APPLICATIONS);
    let applications = found.await?;
    let cases = cases(list, &applications.items).into_iter();
    Ok(ApplicationsView {
        list,
        own: own_email(&current, &account),
        viewers: view(service, account.id, CaseKind::Application, cases).await?,
        applications,
        reasons: service.applications().staff_list(StaffList::SuspendReasons).await?,
        currency: current.site().currency.clone(),
    })
}

/// Returns the identifiers of the cases on a page. Only the list of activation requests has cases.
fn cases(list: ApplicationList, applications: &[ApplicationRecord]) -> Vec<String> {
    let waiting = applications.iter().filter(|_| list == ApplicationList::Waiting);
    waiting.map(|item| item.reference.to_string()).collect()
}

#[component]
pub fn SupportApplicationsPage() -> impl IntoView {
    let forms = CaseForms::new::<ActOn>([StaffList::SuspendReasons]);
    let (list, cursor) = (parameter("list"), parameter("cursor"));
    let data = PageData::new(move || {
        forms.track();
        LoadSupportApplications {
            list: list.get().and_then(|list| ApplicationList::parse(&list)).unwrap_or_default(),
            cursor: cursor.get(),
        }
    });
    view! { <Loaded data render=move |data| view! { <Applications data forms/> }/> }
}

#[component]
fn Applications(data: ApplicationsView, forms: CaseForms<1>) -> impl IntoView {
    let ApplicationsView { list, applications, viewers, reasons, own, currency } = data;
    let cases = cases(list, &applications.items);
    let viewers = followed(CaseKind::Application, cases, viewers);
    let [of_reasons] = forms.lists;
    let lists = ApplicationList::ALL.map(|each| (address(each), title(each), each == list));
    view! {
        <Page title="Applications">
            {tabs("Lists of applications", lists)}
            <FormAlert form=forms.decide/>
            {listed((list, &applications.items), viewers, own, &currency, forms.decide)}
            {next_link(&address(list), applications.next, "More applications")}
            <ListForm
                state=of_reasons
                heading="Reasons to suspend"
                hint=REASONS_HINT
                lines=reasons
            />
        </Page>
    }
}

fn address(list: ApplicationList) -> String {
    format!("/support/applications?list={}", list.as_str())
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
    (list, applications): (ApplicationList, &[ApplicationRecord]),
    viewers: RwSignal<Vec<Viewer>>,
    own: Option<String>,
    currency: &str,
    form: FormState,
) -> AnyView {
    let none = match list {
        ApplicationList::Waiting => "No application waits for activation.",
        ApplicationList::Pending => "No application is Pending.",
        ApplicationList::Active => "No application is Active.",
        ApplicationList::Suspended => "No application is Suspended.",
        ApplicationList::All => "There is no application yet.",
    };
    let table = Table::wide(applications)
        .column("Application", move |application| named(application, viewers))
        .column("Account", |application| {
            let (title, email) = (application.email.clone(), application.email.clone());
            view! { <div class="one-line" title=title><MarkedEmail email/></div> }
        })
        .column("Sender name", sender_for_staff);
    // The other lists have applications of one status.
    let table = match list {
        ApplicationList::Waiting => {
            table.time("Requested (UTC)", |application| application.activation_requested_at)
        }
        _ => table.state("Status", |application| State::from(application)),
    };
    table
        .money("Balance", currency, |application| application.balance.shown())
        .styled(BUTTONS, "Action", move |application| {
            actions(application, own.as_deref(), form, address(list))
        })
        .in_region_or("Applications", none)
}

/// Renders an application's name over its reference. Only an unusual category is named.
fn named(application: &ApplicationRecord, viewers: RwSignal<Vec<Viewer>>) -> impl IntoView + use<> {
    let (reference, name) = (application.reference, application.display_name());
    let category = match application.category {
        Category::Sms => String::new(),
        category @ Category::Electricity => format!(" ({category})"),
    };
    view! {
        <div class="one-line" title=name.clone()>{name.clone()}</div>
        <div class="fine">{application_link(reference)} {category}</div>
        {others(viewers, reference.to_string())}
    }
}

/// Renders a button for each action that the application's status allows. `own` is the email of the
/// reader, if they can't favour their own applications. `next` is the page to return to.
pub fn actions(
    application: &ApplicationRecord,
    own: Option<&str>,
    form: FormState,
    next: String,
) -> impl IntoView + use<> {
    let reference = application.reference.to_string();
    let allowed = [
        (StatusAction::Approve, DeskAct::Approve),
        (StatusAction::Reinstate, DeskAct::Reinstate),
        (StatusAction::Suspend, DeskAct::Suspend),
    ];
    let before = ApplicationStatus::Pending;
    let is_own = own == Some(application.email.as_str());
    allowed
        .into_iter()
        .filter(|(action, _)| {
            !application.account_closed
                && (!is_own || *action == StatusAction::Suspend)
                && application.status.after(*action, before).is_some()
        })
        .map(|(_, act)| {
            let (subject, next) = (reference.clone(), next.clone());
            if act.is_confirmed() {
                confirm_button(act, &reference, subject, next).into_any()
            } else {
                act_form(form, act, &reference, subject, next).into_any()
            }
        })
        .collect_view()
}
