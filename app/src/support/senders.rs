//! `/support/senders`: the sender names that wait for a decision.

use domain::DeskAct;
use domain::decision::{CaseKind, StaffList, Viewer};
use domain::records::{Paged, SenderCase, SenderRequestRecord};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::confirm::{ActOn, confirm_button};
use super::desk::{CaseForms, act_form};
use super::links::application_link;
use super::lists::{ListForm, REASONS_HINT};
use super::marked_email::MarkedEmail;
use super::viewers::{followed, others};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    BUTTONS, DateTime, Fact, FormAlert, FormState, Loaded, Page, StateMark, Table, next_link,
    parameter,
};
#[cfg(feature = "ssr")]
use {super::desk::own_email, super::viewers::view, crate::portal_request::staff};

/// The number of requests on a page.
#[cfg(feature = "ssr")]
const CASES: i64 = 25;

const SENDERS_PATH: &str = "/support/senders";

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendersView {
    cases: Paged<SenderCase>,
    /// Other members of staff who are viewing these requests.
    viewers: Vec<Viewer>,
    /// Suggested reasons to reject a name.
    reasons: Vec<String>,
    /// Words that sender names shouldn't contain.
    reserved: Vec<String>,
    /// The email of the reader, if they can't accept names for their own applications.
    own: Option<String>,
}

/// Loads the pending sender names for staff.
#[server(prefix = "/fn", endpoint = "support-senders", input = GetUrl)]
pub async fn load_support_senders(
    #[server(default)] cursor: Option<String>,
) -> Result<SendersView, Problem> {
    let (current, account) = staff().await?;
    let service = current.service();
    let cases = service.applications().sender_cases(cursor.as_deref(), CASES).await?;
    let names = names(&cases.items).into_iter();
    Ok(SendersView {
        viewers: view(service, account.id, CaseKind::Sender, names).await?,
        own: own_email(&current, &account),
        cases,
        reasons: service.applications().staff_list(StaffList::RejectReasons).await?,
        reserved: service.applications().staff_list(StaffList::ReservedWords).await?,
    })
}

/// Returns the identifiers of cases, which are the IDs of the requests.
fn names(cases: &[SenderCase]) -> Vec<String> {
    cases.iter().map(|case| case.request.id.to_string()).collect()
}

#[component]
pub fn SendersPage() -> impl IntoView {
    let forms = CaseForms::new::<ActOn>([StaffList::RejectReasons, StaffList::ReservedWords]);
    let cursor = parameter("cursor");
    let data = PageData::new(move || {
        forms.track();
        LoadSupportSenders { cursor: cursor.get() }
    });
    view! { <Loaded data render=move |data| view! { <Senders data forms/> }/> }
}

#[component]
fn Senders(data: SendersView, forms: CaseForms<2>) -> impl IntoView {
    let SendersView { cases, viewers, reasons, reserved, own } = data;
    let viewers = followed(CaseKind::Sender, names(&cases.items), viewers);
    let [of_reasons, of_words] = forms.lists;
    view! {
        <Page title="Sender names">
            <FormAlert form=forms.decide/>
            {listed(&cases.items, viewers, own, forms.decide)}
            {next_link(SENDERS_PATH, cases.next, "Later requests")}
            <ListForm
                state=of_reasons
                heading="Reasons to reject"
                hint=REASONS_HINT
                lines=reasons
            />
            <ListForm
                state=of_words
                heading="Reserved words"
                hint="Write one word per line. Names that contain or resemble one are marked above."
                lines=reserved
            />
        </Page>
    }
}

fn listed(
    cases: &[SenderCase],
    viewers: RwSignal<Vec<Viewer>>,
    own: Option<String>,
    form: FormState,
) -> AnyView {
    Table::wide(cases)
        .styled("key", "Name", move |case| {
            view! {
                {case.request.name.clone()}
                {others(viewers, case.request.id.to_string())}
            }
        })
        .column("Account", |case| view! { <MarkedEmail email=case.email.clone()/> })
        .column("Application", |case| {
            let category = format!(" ({})", case.category);
            view! { {application_link(case.request.reference)} {category} }
        })
        .time("Requested (UTC)", |case| case.request.requested_at)
        .column("Warnings", doubts)
        .column("Earlier", |case| earlier(&case.earlier))
        .styled(BUTTONS, "Action", move |case| {
            let name = &case.request.name;
            let about = format!("{name} for {}", case.request.reference);
            actions(case, own.as_deref(), &about, form, SENDERS_PATH.to_owned())
        })
        .in_region_or("Sender names", "No sender name waits for a decision.")
}

/// Renders the case of an application on its page, whose path is `here`.
pub fn requested_name(
    case: &SenderCase,
    own: Option<&str>,
    form: FormState,
    here: String,
) -> impl IntoView + use<> {
    let SenderRequestRecord { name, requested_at, .. } = case.request.clone();
    let buttons = actions(case, own, "the sender name", form, here);
    let (doubts, earlier) = (doubts(case), earlier(&case.earlier));
    view! {
        <h2 id="requested-name">"Requested sender name"</h2>
        <dl class="facts">
            <Fact term="Name" class="key">{name}</Fact>
            <Fact term="Requested (UTC)" class="figures">
                <DateTime at=requested_at/>
            </Fact>
            <Fact term="Warnings">{doubts}</Fact>
            <Fact term="Earlier">{earlier}</Fact>
        </dl>
        <div class="buttons">{buttons}</div>
    }
}

fn doubts(case: &SenderCase) -> impl IntoView + use<> {
    let doubts = case.warnings().into_iter().map(IntoAny::into_any).collect();
    folded(doubts, "Nothing found", "warnings")
}

/// Renders lines in the height of one: a single line as it is, and more of them behind their number.
fn folded(lines: Vec<AnyView>, none: &'static str, noun: &'static str) -> AnyView {
    let count = lines.len();
    let lines = lines.into_iter().map(|line| view! { <div>{line}</div> }).collect_view();
    match count {
        0 => none.into_any(),
        1 => lines.into_any(),
        _ => view! {
            <details>
                <summary>{format!("{count} {noun}")}</summary>
                {lines}
            </details>
        }
        .into_any(),
    }
}

/// Renders the account's earlier requests.
fn earlier(requests: &[SenderRequestRecord]) -> impl IntoView + use<> {
    let lines = requests.iter().map(|request| {
        let name = request.name.clone();
        let reason = request.reason.clone().map(|reason| format!(": {reason}"));
        view! { {name} " " <StateMark state=request.status/> {reason} }.into_any()
    });
    folded(lines.collect(), "None", "earlier requests")
}

/// Renders the buttons of a case. `own` is the email of the reader, if they can't accept names for
/// their own applications. `next` is the page to return to.
fn actions(
    case: &SenderCase,
    own: Option<&str>,
    about: &str,
    form: FormState,
    next: String,
) -> impl IntoView + use<> {
    let id = case.request.id.to_string();
    let accept = if own == Some(case.email.as_str()) {
        "Yours ".into_any()
    } else if case.warnings().is_empty() {
        act_form(form, DeskAct::Accept, about, id.clone(), next.clone()).into_any()
    } else {
        confirm_button(DeskAct::Accept, about, id.clone(), next.clone()).into_any()
    };
    view! {
        {accept}
        {confirm_button(DeskAct::Reject, about, id, next)}
    }
}
