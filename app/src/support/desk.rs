//! Parts that the pages of staff share: the forms of cases, and forms in table rows.

use domain::decision::{Decided, StaffList};
use domain::{DeskAct, Refusal};
use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::lists::ListState;
use crate::problem::Problem;
use crate::ui::{FormState, PostForm, SubmitButton};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::CurrentRequest, domain::audit_action::clause,
    domain::records::AccountRecord, domain::support::AuditRecord, service::AuditFilter,
};

/// The path of the approvals. A form leads there if a second member of staff has to approve its
/// action.
#[cfg(feature = "ssr")]
pub const APPROVALS_PATH: &str = "/support/approvals";

/// Whether an application is the reader's own, and the settings forbid that they favour it. `email`
/// is that of its account.
#[cfg(feature = "ssr")]
pub fn is_own(current: &CurrentRequest, reader: &AccountRecord, email: &str) -> bool {
    reader.email == email && !current.service().limits().own_applications
}

/// Returns the reader's email, if the settings forbid that they favour their own applications.
#[cfg(feature = "ssr")]
pub fn own_email(current: &CurrentRequest, reader: &AccountRecord) -> Option<String> {
    is_own(current, reader, &reader.email).then(|| reader.email.clone())
}

/// Returns the end of a sentence that says who decided, and when.
pub fn by(decided: &Decided) -> String {
    format!(" by {} at {} UTC.", decided.by, decided.at.to_table())
}

/// Returns who took an action on a subject last, and when. The audit log has both.
#[cfg(feature = "ssr")]
pub async fn last_decision(
    current: &CurrentRequest,
    action: &str,
    subject: &str,
) -> Result<Option<Decided>, Problem> {
    let (action, subject) = (Some(action.to_owned()), Some(subject.to_owned()));
    let filter = AuditFilter { action, subject, limit: 1, ..AuditFilter::default() };
    let found = current.service().support().audit(&filter).await?.items.into_iter().next();
    Ok(found.map(decided))
}

/// Returns the decision that an entry of the audit log records.
#[cfg(feature = "ssr")]
pub fn decided(entry: AuditRecord) -> Decided {
    let AuditRecord { who, at, action, before, after, .. } = entry;
    let what = clause(&action, before.as_deref(), after.as_deref());
    Decided { by: who, at, what: what.map(String::into_boxed_str) }
}

/// The forms of a page of cases: one for the decisions, and one for each list that helps staff
/// decide.
#[derive(Clone, Copy)]
pub struct CaseForms<const N: usize> {
    pub decide: FormState,
    pub lists: [ListState; N],
    /// The refusal of a decision because its case has changed.
    changed: Memo<Option<Refusal>>,
}

impl<const N: usize> CaseForms<N> {
    /// Returns the forms of a page. `D` is the server function that makes the decisions.
    pub fn new<D: ServerFn<Error = Problem, Output = ()>>(lists: [StaffList; N]) -> Self {
        let decide = FormState::new::<D>("decision-alert");
        let changed = decide.refused_with(is_change);
        Self { decide, lists: lists.map(ListState::new), changed }
    }

    /// Makes the current reactive computation run again when one of the forms is accepted, and when
    /// a case isn't as the page shows it.
    pub fn track(self) {
        // `track` wouldn't compute the memo, and a memo that isn't computed notifies nobody.
        drop(self.changed.get());
        self.decide.accepted.track();
        for list in self.lists {
            list.form.accepted.track();
        }
    }
}

/// Renders a form in a table row: a button with hidden fields. `about` tells the rows apart for
/// screen readers.
pub fn row_form(
    form: FormState,
    label: &'static str,
    about: &str,
    fields: Vec<(&'static str, String)>,
) -> impl IntoView + use<> {
    button_form(form, (label, false), about, fields)
}

/// Like [`row_form`], for an action that takes something away: its button is red.
pub fn removal_form(
    form: FormState,
    label: &'static str,
    about: &str,
    fields: Vec<(&'static str, String)>,
) -> impl IntoView + use<> {
    button_form(form, (label, true), about, fields)
}

fn button_form(
    form: FormState,
    (label, danger): (&'static str, bool),
    about: &str,
    fields: Vec<(&'static str, String)>,
) -> impl IntoView + use<> {
    let fields = fields
        .into_iter()
        .map(|(name, value)| view! { <input type="hidden" name=name value=value/> })
        .collect_view();
    let about = about.to_owned();
    view! {
        <PostForm form inline=true>
            {fields}
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
    row_form(form, act.label(), about, fields)
}

/// Whether a form was refused because its subject isn't as the page shows it.
pub const fn is_change(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::ChangedMeanwhile { .. }
            | Refusal::NothingToDo { .. }
            | Refusal::BatchEnded
            | Refusal::StatusConflict { .. }
            | Refusal::SenderDecided { .. }
            | Refusal::LastCarrier { .. }
    )
}
