//! Parts that the pages of staff share: the forms of cases, and forms in table rows.

use domain::DeskAct;
use domain::decision::StaffList;
use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::lists::{ReasonField, SetStaffList};
use crate::problem::Problem;
use crate::ui::{FormState, PostForm, SubmitButton};

/// The path of the approvals. A form leads there if a second member of staff has to approve its
/// action.
#[cfg(feature = "ssr")]
pub const APPROVALS_PATH: &str = "/support/approvals";

/// The forms of a page of cases: one for the decisions, and one for the lists that help staff
/// decide.
#[derive(Clone, Copy)]
pub struct CaseForms {
    pub decide: FormState,
    pub lists: FormState,
}

impl CaseForms {
    /// Returns the forms of a page. `D` is the server function that makes the decisions.
    pub fn new<D: ServerFn<Error = Problem, Output = ()>>() -> Self {
        Self {
            decide: FormState::new::<D>("decision-alert"),
            lists: FormState::new::<SetStaffList>("lists-alert"),
        }
    }

    /// Makes the current reactive computation run again when one of the forms is accepted.
    pub fn track(self) {
        self.decide.accepted.track();
        self.lists.accepted.track();
    }
}

/// Renders a form in a table row: a button with hidden fields, and a field for a reason if
/// `reasons` is given. `about` tells the rows apart for screen readers.
pub fn row_form(
    form: FormState,
    label: &'static str,
    about: &str,
    fields: Vec<(&'static str, String)>,
    reasons: Option<StaffList>,
) -> impl IntoView + use<> {
    button_form(form, (label, false), about, fields, reasons)
}

/// Like [`row_form`], for an action that takes something away: its button is red.
pub fn removal_form(
    form: FormState,
    label: &'static str,
    about: &str,
    fields: Vec<(&'static str, String)>,
) -> impl IntoView + use<> {
    button_form(form, (label, true), about, fields, None)
}

fn button_form(
    form: FormState,
    (label, danger): (&'static str, bool),
    about: &str,
    fields: Vec<(&'static str, String)>,
    reasons: Option<StaffList>,
) -> impl IntoView + use<> {
    let fields = fields
        .into_iter()
        .map(|(name, value)| view! { <input type="hidden" name=name value=value/> })
        .collect_view();
    let about = about.to_owned();
    view! {
        <PostForm form inline=true>
            {fields}
            {reasons.map(|list| view! { <ReasonField list about=about.clone()/> })}
            <SubmitButton label form danger about/>
        </PostForm>
    }
}

/// Renders the form of an action without a confirmation. `about` tells the rows of a table apart.
/// `next` is the page to return to.
pub fn act_form(
    form: FormState,
    act: DeskAct,
    about: &str,
    subject: String,
    next: String,
) -> impl IntoView + use<> {
    let fields = vec![("act", act.as_str().to_owned()), ("subject", subject), ("next", next)];
    row_form(form, act.label(), about, fields, None)
}
