//! Parts that the pages of staff share: forms in rows of tables, and links to further pages.

use domain::decision::StaffList;
use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_router::location::Url;

use super::lists::{ReasonField, SetStaffList};
use crate::problem::Problem;
use crate::ui::{FormState, PostForm};

/// The address of the page of approvals, where a form leads that takes two members of staff.
#[cfg(feature = "ssr")]
pub const APPROVALS_PATH: &str = "/support/approvals";

/// The forms of a page of cases: the decisions, and the lists that staff decide by.
#[derive(Clone, Copy)]
pub struct CaseForms {
    pub decide: FormState,
    pub lists: FormState,
}

impl CaseForms {
    /// The forms of a page whose decisions this server function makes.
    pub fn new<D: ServerFn<Error = Problem, Output = ()>>() -> Self {
        Self {
            decide: FormState::new::<D>("decision-alert"),
            lists: FormState::new::<SetStaffList>("lists-alert"),
        }
    }

    /// Has what runs now run again when one of the forms was accepted.
    pub fn track(self) {
        self.decide.accepted.track();
        self.lists.accepted.track();
    }
}

/// A form in a row of a table: a button with hidden fields and, where a list of reasons is given,
/// a field for a reason.
pub fn row_form(
    form: FormState,
    label: &'static str,
    fields: Vec<(&'static str, String)>,
    reasons: Option<StaffList>,
) -> impl IntoView {
    let fields = fields
        .into_iter()
        .map(|(name, value)| view! { <input type="hidden" name=name value=value/> })
        .collect_view();
    view! {
        <PostForm form inline=true>
            {fields}
            {reasons.map(|list| view! { <ReasonField list/> })}
            <button type="submit" class="button">
                {label}
            </button>
        </PostForm>
    }
}

/// The link to the next page of a list, if there is one. The address ends where the name of a
/// parameter can follow.
pub fn next_link(
    address: &str,
    cursor: Option<String>,
    label: &'static str,
) -> impl IntoView + use<> {
    cursor.map(|cursor| {
        let href = format!("{address}cursor={}", Url::escape(&cursor));
        view! {
            <p>
                <a href=href rel="next">
                    {label}
                </a>
            </p>
        }
    })
}
