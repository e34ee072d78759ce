//! The lists that staff maintain, and the fields that suggest reasons from them.

use domain::decision::StaffList;
use leptos::prelude::*;

use crate::problem::Problem;
use crate::ui::{FormState, PostForm, SubmitButton, TextArea};
#[cfg(feature = "ssr")]
use {crate::portal_request::staff, crate::problem::Cause, service::Actor};

/// Replaces a list. `lines` has one entry per line.
#[server(prefix = "/fn", endpoint = "set-staff-list")]
pub async fn set_staff_list(list: String, #[server(default)] lines: String) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let parsed = StaffList::parse(&list).ok_or(Cause::Unreadable)?;
    let actor = Actor::Account(account.id);
    let applications = current.service().applications();
    let set = applications.set_staff_list(&actor, parsed, &lines);
    set.await.map_err(|error| Problem::from(error).typed(parsed.as_str(), &lines))
}

/// The hint below a list of reasons.
pub const REASONS_HINT: &str =
    "Write one reason per line. Confirmations suggest them. Customers read the reason you send.";

/// Renders the form that changes a list. The page shows its problem, because it may have several.
#[component]
pub fn ListForm(
    list: StaffList,
    heading: &'static str,
    hint: &'static str,
    lines: Vec<String>,
    form: FormState,
) -> impl IntoView {
    let id = format!("list-{}", list.as_str());
    let typed = form.typed(list.as_str());
    let came_back = typed.is_some();
    let text = typed.unwrap_or(lines.join("\n"));
    view! {
        <details open=came_back>
            <summary>{heading}</summary>
            <PostForm form without_alert=true>
                <input type="hidden" name="list" value=list.as_str()/>
                <TextArea label=heading id name="lines" rows="6" text hint/>
                <SubmitButton label="Save" form/>
            </PostForm>
        </details>
    }
}

/// Renders a list of reasons, which fields refer to for suggestions.
#[component]
pub fn OfferedReasons(list: StaffList, reasons: Vec<String>) -> impl IntoView {
    let options =
        reasons.into_iter().map(|reason| view! { <option value=reason></option> }).collect_view();
    view! { <datalist id=list.as_str()>{options}</datalist> }
}

/// Renders the field for a reason. Customers read the reason. `about` tells the rows of a table
/// apart.
#[component]
pub fn ReasonField(list: StaffList, about: String) -> impl IntoView {
    view! {
        <label>
            <span class="visually-hidden">"Reason "{about}</span>
            <input
                type="text"
                placeholder="Reason"
                size="14"
                maxlength="500"
                name="reason"
                list=list.as_str()
                required
                autocomplete="off"
            />
        </label>
    }
}
