//! Forms that post to a server function: by a script, or by the browser where no scripts run.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_router::hooks::use_query_map;

use super::loaded::{LeaveToSetUp, LeaveToSignIn};
use crate::problem::{Cause, ComeBack, Problem, problem_anchor};

/// What became of the form that was submitted last. A page shows either that a form was accepted or
/// why one was refused, never both.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    Refused,
}

/// The forms that were submitted since the document was loaded.
#[derive(Clone, Copy)]
pub struct Submits {
    last: RwSignal<Option<Outcome>>,
    /// Whether a notice that appears now gets the focus: a form was just accepted.
    focuses_notice: StoredValue<bool>,
}

impl Submits {
    /// Those of a document that was loaded with a form that came back, or without one.
    pub fn new(came_back: bool) -> Self {
        Self {
            last: RwSignal::new(came_back.then_some(Outcome::Refused)),
            focuses_notice: StoredValue::new(false),
        }
    }

    /// Another page is shown: a refusal on the one before is no matter of its notices.
    pub fn leave_page(self) {
        if self.last.get_untracked() == Some(Outcome::Refused) {
            self.last.set(None);
        }
    }

    fn was_refused(self) -> bool {
        self.last.get() == Some(Outcome::Refused)
    }
}

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
    /// What the forms of a page share: the form that came back to it, which is over once one was
    /// sent, and what became of those that were sent.
    shared: StoredValue<(Option<ComeBack>, Option<Submits>)>,
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
        let submits = use_context::<Submits>();
        let form = Self {
            address: S::PATH,
            shared: StoredValue::new((come_back, submits)),
            ..Self::plain(alert, problem)
        };
        if let Some(submits) = submits {
            // The problem of a form is over once another one was accepted.
            Effect::new(move || {
                if submits.last.get() == Some(Outcome::Accepted) {
                    form.problem.set(None);
                }
            });
        }
        form
    }

    /// Lets the browser load the page that follows, where a script would only change the one that
    /// is shown. After a sign-in nothing is left then of who was signed in before, and the server
    /// hands out a form that waited for the sign-in.
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
            shared: StoredValue::new((None, None)),
            loads_next: false,
            sent_by: StoredValue::new(None),
        }
    }

    /// The id of a field of the form: several forms of a page may have one of the same name.
    pub(super) fn id_of(&self, field: &str) -> String {
        let function = self.address.trim_start_matches("/fn/");
        format!("field-{function}-{field}")
    }

    /// Whether the problem is about a field.
    pub fn is_about(&self, field: &str) -> bool {
        self.problem.with(|problem| {
            let cause = problem.as_ref().map(|problem| &problem.cause);
            cause.and_then(Cause::field) == Some(field)
        })
    }

    /// The sentence of the problem, beside the field that it is about.
    pub(super) fn beside(self, id: String, field: &'static str) -> impl IntoView {
        move || {
            let sentence = (self.problem).with(|problem| Some(problem.as_ref()?.sentence()));
            let sentence = sentence.filter(|_| self.is_about(field));
            let id = id.clone();
            sentence.map(|sentence| view! { <p id=id class="field-problem">{sentence}</p> })
        }
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
    #[prop(into)]
    path: String,
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
            <a class="button button-quiet" href=path.clone()>
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
    // Read now: it is gone if the page is left meanwhile.
    let (come_back, submits) = form.shared.try_get_value().unwrap_or_default();
    let answer = crate::client::post(form.address, &fields).await;
    // The signals are gone if the page was left meanwhile.
    form.pending.try_set(false);
    if let Some(come_back) = come_back {
        come_back.try_set_value(None);
    }
    let outcome = match &answer {
        Ok(_) => Outcome::Accepted,
        Err(_) => Outcome::Refused,
    };
    if let Some(Submits {
        last,
        focuses_notice,
    }) = submits
    {
        focuses_notice.try_set_value(outcome == Outcome::Accepted);
        last.try_set(Some(outcome));
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
            request_animation_frame(super::focus::keep_focus);
        }
        Err(problem) => {
            form.problem.try_set(Some(problem));
        }
    }
}

/// Gives an element the focus once it is shown.
fn focus_soon(node: NodeRef<leptos::html::Div>) {
    request_animation_frame(move || {
        if let Some(element) = node.try_get_untracked().flatten() {
            let _ = element.focus();
        }
    });
}

/// Shows the problem of a form. Screen readers read it out when it appears, and it gets the focus:
/// the fields follow it. Where no scripts run, the page opens here.
#[component]
pub fn FormAlert(form: FormState) -> impl IntoView {
    let node = NodeRef::new();
    Effect::new(move || {
        if form.problem.with(Option::is_some) {
            focus_soon(node);
        }
    });
    // A form that is sent by GET never comes back.
    let anchor = (!form.address.is_empty()).then(|| problem_anchor(form.address));
    let cause = move || {
        form.problem
            .with(|problem| Some(problem.as_ref()?.cause.clone()))
    };
    let sentence = move || {
        form.problem
            .with(|problem| Some(problem.as_ref()?.sentence()))
    };
    view! {
        <div id=form.alert class="alert-slot" role="alert" tabindex="-1" node_ref=node>
            {move || {
                let anchor = anchor.clone();
                sentence().map(|sentence| view! { <p id=anchor class="alert">{sentence}</p> })
            }}
        </div>
        {move || match cause() {
            Some(Cause::SignedOut) => Some(view! { <LeaveToSignIn/> }.into_any()),
            Some(Cause::SecondFactorMissing) => Some(view! { <LeaveToSetUp/> }.into_any()),
            _ => None,
        }}
    }
}

/// The notice that a form was accepted: shown while the page's address has this parameter and no
/// form was refused since. When it appears, screen readers read it out and it gets the focus.
#[component]
pub fn AcceptedNotice(parameter: &'static str, sentence: &'static str) -> impl IntoView {
    let query = use_query_map();
    let submits = use_context::<Submits>();
    let is_shown = move || {
        let refused = submits.is_some_and(Submits::was_refused);
        !refused && query.with(|query| query.get(parameter).is_some())
    };
    let node = NodeRef::new();
    Effect::new(move || {
        let Some(submits) = submits else { return };
        submits.last.track();
        if is_shown() && submits.focuses_notice.get_value() {
            submits.focuses_notice.set_value(false);
            focus_soon(node);
        }
    });
    view! {
        <div class="status-slot" role="status" tabindex="-1" node_ref=node>
            {move || is_shown().then(|| view! { <p class="notice notice-good">{sentence}</p> })}
        </div>
    }
}

/// The button that submits its form; a click does nothing while the answer is awaited.
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
            // A button that is disabled loses the focus to nothing.
            aria-disabled=move || form.pending.get().then_some("true")
        >
            {label}
        </button>
    }
}
