//! `/support/applications`: lists of applications. The first list holds the activation requests.

use domain::application::StatusAction;
use domain::decision::{ApplicationList, CaseKind, StaffList, Viewer};
use domain::records::{ApplicationRecord, Paged};
use domain::{ApplicationStatus, Reference};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::desk::{CaseForms, row_form};
use super::links::application_link;
#[cfg(feature = "ssr")]
use super::links::application_path;
use super::lists::{ListForm, OfferedReasons, REASONS_HINT};
use super::marked_email::MarkedEmail;
use super::viewers::{followed, others};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    AcceptedNotice, BUTTONS, FormAlert, FormState, Loaded, Page, Table, next_link, parameter, tabs,
};
#[cfg(feature = "ssr")]
use {
    super::viewers::view,
    crate::portal_request::staff,
    crate::problem::Cause,
    service::{Actor, Service},
};

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
        viewers: view(service, account.id, CaseKind::Application, cases).await?,
        applications,
        reasons: service.applications().staff_list(StaffList::SuspendReasons).await?,
        currency: current.site().currency.clone(),
    })
}

/// Approves, suspends or reinstates an application.
#[server(prefix = "/fn", endpoint = "change-application")]
pub async fn change_application(
    reference: Reference,
    action: String,
    #[server(default)] reason: String,
    #[server(default)] opens_next: Option<String>,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let (service, actor) = (current.service(), Actor::Account(account.id));
    match action.as_str() {
        APPROVE => {
            let approved = service.applications().approve(&actor, reference).await?;
            if opens_next.is_some() {
                leptos_axum::redirect(&next_case(service).await.map_err(Problem::after_change)?);
            }
            approved
        }
        SUSPEND => service.applications().suspend(&actor, reference, &reason).await?,
        REINSTATE => service.applications().reinstate(&actor, reference).await?,
        _ => return Err(Cause::Unreadable.into()),
    };
    Ok(())
}

/// Returns the address of the application that has waited longest for activation, or of the list if
/// none waits.
#[cfg(feature = "ssr")]
async fn next_case(service: &Service) -> Result<String, Problem> {
    let applications = service.applications();
    let waiting = applications.application_list(ApplicationList::Waiting, None, 1);
    let next = waiting.await?.items.into_iter().next();
    Ok(next.map_or_else(
        || "/support/applications?approved=1".to_owned(),
        |next| format!("{}?approved=1", application_path(next.reference)),
    ))
}

const APPROVE: &str = "approve";
/// The notice on the page that opens after an approval.
pub const APPROVED: &str = "The application is approved.";
const SUSPEND: &str = "suspend";
const REINSTATE: &str = "reinstate";

/// Returns the identifiers of the cases on a page. Only the list of activation requests has cases.
fn cases(list: ApplicationList, applications: &[ApplicationRecord]) -> Vec<String> {
    let waiting = applications.iter().filter(|_| list == ApplicationList::Waiting);
    waiting.map(|item| item.reference.to_string()).collect()
}

#[component]
pub fn SupportApplicationsPage() -> impl IntoView {
    let forms = CaseForms::new::<ChangeApplication>();
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
fn Applications(data: ApplicationsView, forms: CaseForms) -> impl IntoView {
    let ApplicationsView { list, applications, viewers, reasons, currency } = data;
    let cases = cases(list, &applications.items);
    let viewers = followed(CaseKind::Application, cases, viewers);
    let address = |list: ApplicationList| format!("/support/applications?list={}", list.as_str());
    let lists = ApplicationList::ALL.map(|each| (address(each), title(each), each == list));
    view! {
        <Page title="Applications">
            {tabs("Lists of applications", lists)}
            <AcceptedNotice parameter="approved" sentence=APPROVED/>
            <FormAlert form=forms.decide/>
            <OfferedReasons list=StaffList::SuspendReasons reasons=reasons.clone()/>
            {listed(list, &applications.items, viewers, &currency, forms.decide)}
            {next_link(&address(list), applications.next, "More applications")}
            <FormAlert form=forms.lists/>
            <ListForm
                list=StaffList::SuspendReasons
                heading="Reasons to suspend"
                hint=REASONS_HINT
                lines=reasons
                form=forms.lists
            />
        </Page>
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
    viewers: RwSignal<Vec<Viewer>>,
    currency: &str,
    form: FormState,
) -> AnyView {
    let none = match list {
        ApplicationList::Waiting => "No application waits for activation.",
        _ => "There is no such application.",
    };
    Table::wide(applications)
        .styled("key", "Reference", move |application| {
            let reference = application.reference;
            view! {
                {application_link(reference)}
                {others(viewers, reference.to_string())}
            }
        })
        .column("Name", ApplicationRecord::display_name)
        .column("Account", |application| view! { <MarkedEmail email=application.email.clone()/> })
        .column("Category", |application| application.category.as_str())
        .column("Sender name", |application| {
            application.sender_name.as_deref().unwrap_or("none").to_owned()
        })
        .state("Status", |application| application.status)
        .time("Requested (UTC)", |application| application.activation_requested_at)
        .money("Balance", currency, |application| application.balance.shown())
        .styled(BUTTONS, "Action", move |application| actions(application, form, false))
        .in_region_or("Applications", none)
}

/// Renders a form for each action that the application's status allows. With `opens_next`, the next
/// waiting application opens after an approval.
pub fn actions(
    application: &ApplicationRecord,
    form: FormState,
    opens_next: bool,
) -> impl IntoView + use<> {
    let reference = application.reference.to_string();
    let allowed = [
        (StatusAction::Approve, APPROVE, "Approve"),
        (StatusAction::Reinstate, REINSTATE, "Reinstate"),
        (StatusAction::Suspend, SUSPEND, "Suspend"),
    ];
    let before = ApplicationStatus::Pending;
    allowed
        .into_iter()
        .filter(|(action, ..)| application.status.after(*action, before).is_some())
        .map(|(action, word, label)| {
            let mut fields = vec![("reference", reference.clone()), ("action", word.to_owned())];
            if opens_next {
                fields.push(("opens_next", "1".to_owned()));
            }
            let suspends = action == StatusAction::Suspend;
            row_form(form, label, fields, suspends.then_some(StaffList::SuspendReasons))
        })
        .collect_view()
}
