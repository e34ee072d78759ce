//! Forms that post to a server function: by a script, or by the browser where no scripts run.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_router::hooks::use_query_map;

use super::loaded::{LeaveToSetUp, LeaveToSignIn};
use crate::problem::{Cause, ComeBack, Problem};

/// The state of a form.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(feature = "hydrate"),
    expect(dead_code, reason = "only a browser sends forms")
)]
pub struct FormState {
    /// The path of the server function.
    address: &'static str,
    /// Id of the element that shows the problem; fields refer to it.
    pub alert: &'static str,
    /// True while the answer is awaited.
    pub pending: RwSignal<bool>,
    /// The problem of the last submission.
    pub problem: RwSignal<Option<Problem>>,
    /// How often the form was accepted while the page was open.
    pub accepted: RwSignal<usize>,
    /// The form that came back to the page: it's over once a form was sent.
    come_back: Option<ComeBack>,
    /// Whether the browser loads the page that follows.
    loads_next: bool,
    /// Name and value of the button that sent the form last, where it has some.
    pub(super) sent_by: StoredValue<Option<(String, String)>>,
}

impl FormState {
    /// The state of a form that posts to a server function.
    pub fn new<S: ServerFn<Error = Problem, Output = ()>>(alert: &'static str) -> Self {
        let come_back = use_context::<ComeBack>();
        let form = come_back.and_then(|form| form.get_value());
        let problem = form
            .filter(|form| form.function == S::PATH)
            .map(|form| form.problem);
        Self {
            address: S::PATH,
            come_back,
            ..Self::plain(alert, problem)
        }
    }

    /// Lets the browser load the page that follows, where a script would only change the one that
    /// is shown. After a sign-in nothing is left then of who was signed in before, and the server
    /// hands out a form that waited for the sign-in.
    #[must_use]
    pub fn loading_next(self) -> Self {
        Self {
            loads_next: true,
            ..self
        }
    }

    /// The state of a form that the browser sends by GET.
    pub fn plain(alert: &'static str, problem: Option<Problem>) -> Self {
        Self {
            address: "",
            alert,
            pending: RwSignal::new(false),
            problem: RwSignal::new(problem),
            accepted: RwSignal::new(0),
            come_back: None,
            loads_next: false,
            sent_by: StoredValue::new(None),
        }
    }

    /// Whether the problem is about a field.
    pub fn is_about(&self, field: &str) -> bool {
        self.problem.with(|problem| {
            let cause = problem.as_ref().map(|problem| &problem.cause);
            cause.and_then(Cause::field) == Some(field)
        })
    }

    /// The text that was typed into a field before the form came back with a problem.
    pub fn typed(&self, field: &str) -> Option<String> {
        self.problem
            .with_untracked(|problem| problem.as_ref()?.text_of(field))
    }
}

/// A search form that the browser sends by GET, with its problem above its fields: what is typed
/// stands in the address, and the page can be kept and shared.
#[component]
pub fn SearchForm(
    /// The path of the page.
    path: &'static str,
    /// What is searched, for screen readers.
    label: &'static str,
    /// The text of the button.
    button: &'static str,
    /// Whether there is a link to the page without anything typed.
    #[prop(optional)]
    with_clear: bool,
    form: FormState,
    children: Children,
) -> impl IntoView {
    let clear = with_clear.then(|| {
        view! {
            <a class="button button-quiet" href=path>
                "Clear"
            </a>
        }
    });
    view! {
        <form class="filters" method="get" action=path role="search" aria-label=label>
            <FormAlert form/>
            {children()}
            <div class="filters-do">
                <button type="submit" class="button button-primary">
                    {button}
                </button>
                {clear}
            </div>
        </form>
    }
}

/// A form of a server function, with its problem above its fields.
#[component]
pub fn PostForm(
    form: FormState,
    /// Whether the form is a button in a line, beside which there is no place for a problem.
    #[prop(optional)]
    inline: bool,
    children: Children,
) -> impl IntoView {
    let node = NodeRef::<leptos::html::Form>::new();
    Effect::new(move || {
        // The page may stay open: its fields are emptied, so that nothing is sent a second time.
        if form.accepted.get() > 0
            && let Some(node) = node.get_untracked()
        {
            node.reset();
        }
    });
    view! {
        <form
            class=if inline { "form-inline" } else { "form" }
            method="post"
            action=form.address
            node_ref=node
            on:submit=move |event| submit(&event, form)
        >
            {(!inline).then(|| view! { <FormAlert form/> })}
            {children()}
        </form>
    }
}

#[cfg(not(feature = "hydrate"))]
fn submit(_event: &leptos::ev::SubmitEvent, _form: FormState) {}

#[cfg(feature = "hydrate")]
fn submit(event: &leptos::ev::SubmitEvent, form: FormState) {
    // A form that can't be read here is sent by the browser itself.
    let Ok(fields) = leptos::form::form_data_from_event(event) else {
        return;
    };
    event.prevent_default();
    // A second click may come before the button is disabled.
    if form.pending.get_untracked() {
        return;
    }
    form.pending.set(true);
    let attribute = |name| event.submitter()?.get_attribute(name);
    form.sent_by
        .set_value(attribute("name").zip(attribute("value")));
    leptos::task::spawn_local(send(form, fields));
}

/// Sends a form whose answer is awaited already.
#[cfg(feature = "hydrate")]
pub(super) async fn send(form: FormState, fields: web_sys::FormData) {
    let answer = crate::client::post(form.address, &fields).await;
    // The signals are gone if the page was left meanwhile.
    form.pending.try_set(false);
    if let Some(come_back) = form.come_back {
        come_back.try_set_value(None);
    }
    match answer {
        Ok(next) => {
            form.problem.try_set(None);
            form.accepted.try_update(|accepted| *accepted += 1);
            if let Some(next) = next {
                if form.loads_next && window().location().set_href(&next).is_ok() {
                    return;
                }
                leptos::server_fn::redirect::call_redirect_hook(&next);
            }
        }
        Err(problem) => {
            form.problem.try_set(Some(problem));
        }
    }
}

/// Shows the problem of a form. Screen readers read it out when it appears.
#[component]
pub fn FormAlert(form: FormState) -> impl IntoView {
    let cause = move || {
        form.problem
            .with(|problem| Some(problem.as_ref()?.cause.clone()))
    };
    view! {
        <div id=form.alert class="alert-slot" role="alert">
            {move || cause().map(|cause| view! { <p class="alert">{cause.sentence()}</p> })}
        </div>
        {move || match cause() {
            Some(Cause::SignedOut) => Some(view! { <LeaveToSignIn/> }.into_any()),
            Some(Cause::SecondFactorMissing) => Some(view! { <LeaveToSetUp/> }.into_any()),
            _ => None,
        }}
    }
}

/// The notice that a form was accepted: shown while the page's address has this parameter, and read
/// out by screen readers when it appears.
#[component]
pub fn AcceptedNotice(parameter: &'static str, sentence: &'static str) -> impl IntoView {
    let query = use_query_map();
    let is_shown = move || query.with(|query| query.get(parameter).is_some());
    view! {
        <div role="status">
            {move || is_shown().then(|| view! { <p class="notice notice-good">{sentence}</p> })}
        </div>
    }
}

/// The button that submits its form; disabled while the answer is awaited.
#[component]
pub fn SubmitButton(
    label: &'static str,
    form: FormState,
    /// Whether it is the page's main action.
    #[prop(optional)]
    primary: bool,
    /// A field that the form has when this button sends it: name and value.
    #[prop(optional)]
    field: Option<(&'static str, &'static str)>,
) -> impl IntoView {
    let (name, value) = field.unzip();
    view! {
        <button
            type="submit"
            class=if primary { "button button-primary" } else { "button" }
            name=name
            value=value
            disabled=move || form.pending.get()
        >
            {label}
        </button>
    }
}
