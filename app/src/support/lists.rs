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
    let keep = |problem: Problem| problem.typed(LIST, &list).typed(LINES, &lines);
    let (current, account) = staff().await.map_err(keep)?;
    let parsed = StaffList::parse(&list).ok_or(Cause::Unreadable)?;
    let actor = Actor::Account(account.id);
    let applications = current.service().applications();
    let set = applications.set_staff_list(&actor, parsed, &lines);
    set.await.map_err(|error| keep(error.into()))
}

/// The fields of the form.
const LIST: &str = "list";
const LINES: &str = "lines";

/// The state of the form that changes a list. A page has a form for each of its lists.
#[derive(Clone, Copy)]
pub struct ListState {
    list: StaffList,
    pub form: FormState,
    /// The text that was typed and isn't saved. It stays when the page loads its data again, for
    /// example after another list was saved.
    typed: RwSignal<Option<String>>,
}

impl ListState {
    pub fn new(list: StaffList) -> Self {
        let form = FormState::new::<SetStaffList>(list.as_str()).with_text(LIST, list.as_str());
        let typed = RwSignal::new(form.typed(LINES));
        Effect::new(move || {
            if form.accepted.get() > 0 {
                typed.set(None);
            }
        });
        Self { list, form, typed }
    }
}

/// The hint below a list of reasons.
pub const REASONS_HINT: &str =
    "Write one reason per line. Confirmations suggest them. Customers read the reason you send.";

/// Renders the form that changes a list.
#[component]
pub fn ListForm(
    state: ListState,
    heading: &'static str,
    hint: &'static str,
    /// The saved list.
    lines: Vec<String>,
) -> impl IntoView {
    let ListState { list, form, typed } = state;
    let id = format!("list-{}", list.as_str());
    let unsaved = typed.get_untracked();
    // A problem without the text is from a session that couldn't keep so long a text.
    let is_open = unsaved.is_some() || form.problem.with_untracked(Option::is_some);
    let text = unsaved.unwrap_or(lines.join("\n"));
    view! {
        <details open=is_open>
            <summary>{heading}</summary>
            <PostForm form>
                <input type="hidden" name=LIST value=list.as_str()/>
                <TextArea label=heading id name=LINES rows="6" text hint typed/>
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
