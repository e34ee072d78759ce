//! `/support/approvals`: requests by members of staff that a second member has to approve.

use domain::approval::{APPROVAL_DAYS, ApprovalRecord, StaffAct};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::location::Url;
use serde::{Deserialize, Serialize};

use super::confirm::NAME_CHARS_MAX;
use super::desk::removal_form;
use super::import::IMPORT_PATH;
use super::links::{deposit_path, named_link};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    BUTTONS, FormAlert, FormState, Loaded, Notice, NoticeSlot, Page, PostForm, StepUpField,
    SubmitButton, Table,
};
#[cfg(feature = "ssr")]
use {
    super::desk::APPROVALS_PATH,
    crate::portal_request::{redirect_to, staff, step_up},
    crate::problem::Cause,
    crate::ui::address,
};

const APPROVE: &str = "approve";
const DECLINE: &str = "decline";

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalsView {
    waiting: Vec<ApprovalRecord>,
    /// The account of the member of staff who opened the page.
    account_id: i64,
    /// Whether the settings require a second member of staff.
    four_eyes: bool,
}

/// Loads the requests that wait for approval.
#[server(prefix = "/fn", endpoint = "approvals", input = GetUrl)]
pub async fn load_approvals() -> Result<ApprovalsView, Problem> {
    let (current, account) = staff().await?;
    Ok(ApprovalsView {
        waiting: current.service().support().approvals().await?,
        account_id: account.id,
        four_eyes: current.service().limits().four_eyes,
    })
}

/// Approves or declines a request by a member of staff.
#[server(prefix = "/fn", endpoint = "decide-approval")]
pub async fn decide_approval(
    id: i64,
    action: String,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let service = current.service();
    let waiting = service.support().approvals().await?;
    let request = waiting.into_iter().find(|one| one.id == id).map(|one| one.act.to_string());
    match action.as_str() {
        APPROVE => {
            let keep = |problem: Problem| problem.typed("id", &id.to_string());
            step_up(&current, &account, &credential).await.map_err(keep)?;
            service.support().approve_act(account.id, id).await?;
        }
        DECLINE => service.support().decline_act(account.id, id).await?,
        _ => return Err(Cause::Unreadable.into()),
    }
    let request = request.unwrap_or_default();
    redirect_to(&address(APPROVALS_PATH, [(action.as_str(), request.as_str())]))
}

#[component]
pub fn ApprovalsPage() -> impl IntoView {
    let form = FormState::new::<DecideApproval>("approval-alert");
    let data = PageData::after([form], || LoadApprovals {});
    view! { <Loaded data render=move |data| view! { <Approvals data form/> }/> }
}

#[component]
fn Approvals(data: ApprovalsView, form: FormState) -> impl IntoView {
    let reader = data.account_id;
    let lead = if data.four_eyes {
        format!(
            "Changes to money, second factors and staff roles need two members of staff: one \
             requests the change, and another one approves it. A request expires after \
             {APPROVAL_DAYS} days."
        )
    } else {
        "Every change takes effect at once, because the settings don't require a second member of \
         staff. Requests from before that can still be decided here."
            .to_owned()
    };
    view! {
        <Page title="Approvals">
            <DecidedNotice parameter=APPROVE done="approved"/>
            <DecidedNotice parameter=DECLINE done="declined"/>
            <p class="lead">{lead}</p>
            <FormAlert form/>
            {Table::wide(&data.waiting)
                .time("Requested (UTC)", |one| one.asked_at)
                .column("Requested by", |one| named_link(&one.email))
                .column("What", what)
                .styled(BUTTONS, "Action", move |one| actions(one, reader, form))
                .in_region_or("Approvals", "Nothing waits for a second member of staff.")}
        </Page>
    }
}

/// Says which request was decided. The parameter of the address has the requested action.
#[component]
fn DecidedNotice(parameter: &'static str, done: &'static str) -> impl IntoView {
    let request = crate::ui::parameter(parameter);
    let notice = Signal::derive(move || {
        let request: String = request.get()?.chars().take(NAME_CHARS_MAX).collect();
        let sentence = format!("The request “{request}” is {done}.");
        Some(Notice { sentence: sentence.into(), links: Vec::new() })
    });
    view! { <NoticeSlot notice parameters=vec![parameter]/> }
}

/// Renders the requested action, with a link to its details.
fn what(request: &ApprovalRecord) -> impl IntoView + use<> {
    let search = |text: &str| format!("/support/search?q={}", Url::escape(text));
    let (name, href) = match &request.act {
        StaffAct::AssignDeposit { reference, .. } => {
            ("the application", search(reference.as_str()))
        }
        StaffAct::ReturnDeposit { bank_id, .. } => ("the deposit", deposit_path(bank_id)),
        StaffAct::ConfirmStatement { id } => ("its lines", format!("{IMPORT_PATH}?statement={id}")),
        StaffAct::SetPrice { .. } => ("the prices", "/support/prices".to_owned()),
        StaffAct::ResetFactor { email } | StaffAct::Promote { email } => {
            ("the account", search(email))
        }
    };
    view! {
        {request.act.to_string()}
        " ("
        <a href=href>{name}</a>
        ")"
    }
}

fn actions(request: &ApprovalRecord, reader: i64, form: FormState) -> impl IntoView + use<> {
    let id = request.id.to_string();
    let was_sent = form.was_sent("id", id.clone());
    let about = request.act.to_string();
    let declined = vec![("id", id.clone()), ("action", DECLINE.to_owned())];
    let approved = about.clone();
    let approve = (request.asked_by != reader).then(|| {
        view! {
            <PostForm form inline=true>
                <input type="hidden" name="id" value=id/>
                <input type="hidden" name="action" value=APPROVE/>
                {move || was_sent.get().then(|| view! { <StepUpField form/> })}
                <SubmitButton label="Approve" form about=approved/>
            </PostForm>
        }
    });
    view! {
        {approve}
        {removal_form(form, "Decline", &about, declined)}
    }
}
