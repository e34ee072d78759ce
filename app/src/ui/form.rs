//! What every form has: its problem and its button.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::loaded::LeaveToSignIn;
use crate::problem::{Cause, Problem};

/// The problem of a form's last submission. Without JavaScript it comes from the page's address.
pub fn problem_of<S>(action: ServerAction<S>) -> Signal<Option<Problem>>
where
    S: ServerFn<Error = Problem> + Clone + Send + Sync + 'static,
    S::Output: Send + Sync + 'static,
{
    let value = action.value();
    Signal::derive(move || {
        value.with(|value| {
            value
                .as_ref()
                .and_then(|result| result.as_ref().err().cloned())
        })
    })
}

/// Says what was wrong with a form; read out as it appears.
#[component]
pub fn FormAlert(
    /// Fields point to it by this.
    id: &'static str,
    problem: Signal<Option<Problem>>,
) -> impl IntoView {
    let text =
        move || problem.with(|problem| problem.as_ref().map(|problem| problem.cause.sentence()));
    let signed_out = move || {
        problem.with(|problem| {
            problem
                .as_ref()
                .is_some_and(|problem| problem.cause == Cause::SignedOut)
        })
    };
    view! {
        <div id=id class="alert-slot" role="alert">
            {move || text().map(|text| view! { <p class="alert">{text}</p> })}
        </div>
        {move || signed_out().then(|| view! { <LeaveToSignIn/> })}
    }
}

/// The button that submits its form; disabled while the answer is awaited.
#[component]
pub fn SubmitButton(
    label: &'static str,
    /// True while the form is on its way.
    #[prop(into)]
    pending: Signal<bool>,
    /// The one thing to do on the page.
    #[prop(optional)]
    primary: bool,
    /// What the form says when this button sent it: name and value.
    #[prop(optional)]
    says: Option<(&'static str, &'static str)>,
) -> impl IntoView {
    let (name, value) = says.unzip();
    view! {
        <button
            type="submit"
            class=if primary { "button button-primary" } else { "button" }
            name=name
            value=value
            disabled=move || pending.get()
        >
            {label}
        </button>
    }
}
