//! Forms that post to a server function: by script, or by the browser if no scripts run.

use std::borrow::Cow;

use domain::Refusal;
use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_router::hooks::use_query_map;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::loaded::{LeaveToSetUp, LeaveToSignIn};
use crate::page_data::PageData;
use crate::problem::{Cause, ComeBack, Problem, problem_anchor};

/// The outcome of the form that was submitted last. A page shows either that a form was accepted or
/// why one was refused, never both.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    Refused,
}

/// The forms that were submitted since the document loaded.
#[derive(Clone, Copy)]
pub struct Submits {
    last: RwSignal<Option<Outcome>>,
    /// Whether the next notice to appear gets the focus, because a form was just accepted.
    focuses_notice: StoredValue<bool>,
}

impl Submits {
    /// Creates the state for a new document. `came_back` is whether it loaded with a form that came
    /// back.
    pub fn new(came_back: bool) -> Self {
        Self {
            last: RwSignal::new(came_back.then_some(Outcome::Refused)),
            focuses_notice: StoredValue::new(false),
        }
    }

    /// Forgets a refusal when another page opens, so that it doesn't suppress the notices there.
    pub fn leave_page(self) {
        if self.last.get_untracked() == Some(Outcome::Refused) {
            self.last.set(None);
        }
    }

    /// Whether the form that was submitted last was refused. Tracks each submission.
    pub fn was_refused(self) -> bool {
        self.last.get() == Some(Outcome::Refused)
    }
}

/// A form's state.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "hydrate"), expect(dead_code, reason = "only a browser sends forms"))]
pub struct FormState {
    /// The path of the server function.
    address: &'static str,
    /// The ID of the element that shows the problem. Fields refer to it.
    pub alert: &'static str,
    /// Whether the problem has the ID of its function's problems, which a page has only once.
    has_anchor: bool,
    /// True while a response is pending.
    pub pending: RwSignal<bool>,
    /// The problem of the last submission.
    pub problem: RwSignal<Option<Problem>>,
    /// The number of times the form was accepted while the page was open.
    pub accepted: RwSignal<usize>,
    /// State that the page's forms share: the form that came back, until one is sent, and the
    /// outcome of the form that was submitted last.
    shared: StoredValue<(Option<ComeBack>, Option<Submits>)>,
    /// Whether the browser loads the next page, instead of the router.
    loads_next: bool,
    /// The name and value of the button that submitted the form last, if it has any.
    pub(super) sent_by: StoredValue<Option<(String, String)>>,
}

impl FormState {
    /// Creates the state of a form that posts to a server function.
    pub fn new<S: ServerFn<Error = Problem, Output = ()>>(alert: &'static str) -> Self {
        let come_back = use_context::<ComeBack>();
        let form = come_back.and_then(|form| form.get_value());
        let problem = form.filter(|form| form.function == S::PATH).map(|form| form.problem);
        let submits = use_context::<Submits>();
        let form = Self {
            address: S::PATH,
            has_anchor: true,
            shared: StoredValue::new((come_back, submits)),
            ..Self::plain(alert, problem)
        };
        if let Some(submits) = submits {
            // Clears the problem once another form was accepted.
            Effect::new(move || {
                if submits.last.get() == Some(Outcome::Accepted) {
                    form.problem.set(None);
                }
            });
        }
        form
    }

    /// Makes the browser load the next page instead of only changing the current one. A sign-in
    /// needs this for two reasons: nothing of the previous account stays, and the server returns a
    /// form that was waiting for the sign-in.
    pub fn loading_next(self) -> Self {
        Self { loads_next: true, ..self }
    }

    /// Leaves a problem that came back to another form of the same function. The forms of a page
    /// have different texts in `field`. A problem without this text is shown at all of them.
    pub fn with_text(self, field: &str, text: &str) -> Self {
        let sent = self.typed(field);
        let has_anchor = sent.as_deref() == Some(text);
        if sent.is_some() && !has_anchor {
            self.problem.set(None);
        }
        Self { has_anchor, ..self }
    }

    /// Creates the state of a form that the browser sends by GET.
    pub fn plain(alert: &'static str, problem: Option<Problem>) -> Self {
        Self {
            address: "",
            alert,
            has_anchor: false,
            pending: RwSignal::new(false),
            problem: RwSignal::new(problem),
            accepted: RwSignal::new(0),
            shared: StoredValue::new((None, None)),
            loads_next: false,
            sent_by: StoredValue::new(None),
        }
    }

    /// Returns a field's ID. Several forms on a page may have a field of the same name.
    pub(super) fn id_of(&self, field: &str) -> String {
        let function = self.address.trim_start_matches("/fn/");
        format!("field-{function}-{field}")
    }

    pub fn is_about(&self, field: &str) -> bool {
        self.problem.with(|problem| {
            problem.as_ref().is_some_and(|problem| problem.sentence_beside(field).is_some())
        })
    }

    /// Shows the problem's sentence next to the field that it is about.
    pub(super) fn beside(self, id: String, field: &'static str) -> impl IntoView {
        move || {
            let sentence = (self.problem).with(|problem| problem.as_ref()?.sentence_beside(field));
            let id = id.clone();
            sentence.map(|sentence| view! { <p id=id class="field-problem">{sentence}</p> })
        }
    }

    /// Returns the problem's refusal while it fulfils a condition. A page that tracks it can show
    /// the current state.
    pub fn refused_with(self, is_it: fn(&Refusal) -> bool) -> Memo<Option<Refusal>> {
        Memo::new(move |_| {
            self.problem.with(|problem| match &problem.as_ref()?.cause {
                Cause::Refused(refusal) if is_it(refusal) => Some(refusal.clone()),
                _ => None,
            })
        })
    }

    /// Whether the form that came back with a problem had this text in a field. Tells apart the
    /// forms of a table's rows.
    pub fn was_sent(self, field: &'static str, text: String) -> Memo<bool> {
        Memo::new(move |_| {
            let problem = self.problem.read();
            problem.as_ref().and_then(|problem| problem.text_of(field)).as_ref() == Some(&text)
        })
    }

    /// Returns the text that a field had when the form came back with a problem.
    pub fn typed(&self, field: &str) -> Option<String> {
        self.problem.with_untracked(|problem| problem.as_ref()?.text_of(field))
    }
}

impl<T> PageData<T>
where
    T: Clone + Send + Sync + Serialize + DeserializeOwned + 'static,
{
    /// Calls a server function like [`Self::new`], and also when one of the page's forms is accepted.
    pub fn after<S, const N: usize>(
        forms: [FormState; N],
        function: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self
    where
        S: ServerFn<Error = Problem, Output = T> + Serialize + Send + 'static,
    {
        let accepted = forms.map(|form| form.accepted);
        Self::new(move || {
            for count in accepted {
                count.track();
            }
            function()
        })
    }
}

/// A search form that the browser sends by GET, with its problem above the fields. The address
/// contains the search, so the page can be bookmarked and shared.
#[component]
pub fn SearchForm(
    /// The page's path.
    #[prop(into)]
    path: String,
    /// The form's name for screen readers.
    label: &'static str,
    /// The button's text.
    button: &'static str,
    /// Whether to show a link that clears the search.
    #[prop(optional)]
    with_clear: bool,
    /// Whether the page has another button that matters more.
    #[prop(optional)]
    plain: bool,
    /// Fields that few searches need, below the button.
    #[prop(optional_no_strip)]
    more: Option<AnyView>,
    form: FormState,
    children: Children,
) -> impl IntoView {
    let class = if more.is_some() { "filters filters-few" } else { "filters" };
    let submit = if plain { "button" } else { "button button-primary" };
    let clear = with_clear.then(|| {
        view! { <a class="button button-quiet" href=path.clone()>"Clear"</a> }
    });
    view! {
        <form class=class method="get" action=path role="search" aria-label=label>
            <FormAlert form/>
            {children()}
            <div class="filters-do">
                <button type="submit" class=submit>{button}</button>
                {clear}
            </div>
            {more}
        </form>
    }
}

/// A form for a server function, with its problem above the fields.
#[component]
pub fn PostForm(
    form: FormState,
    /// Whether the form is only a button within a line, without room for a problem.
    #[prop(optional)]
    inline: bool,
    children: Children,
) -> impl IntoView {
    let node = NodeRef::<leptos::html::Form>::new();
    Effect::new(move || {
        // If the page stays open, its fields are emptied, so that nothing is sent twice.
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
    // If the form can't be read here, the browser sends it.
    let Ok(fields) = leptos::form::form_data_from_event(event) else {
        return;
    };
    event.prevent_default();
    // A second click may arrive before the button is disabled.
    if form.pending.get_untracked() {
        return;
    }
    form.pending.set(true);
    let attribute = |name| event.submitter()?.get_attribute(name);
    form.sent_by.set_value(attribute("name").zip(attribute("value")));
    leptos::task::spawn_local(send(form, fields));
}

/// Sends a form that is already marked as pending.
#[cfg(feature = "hydrate")]
pub(super) async fn send(form: FormState, fields: web_sys::FormData) {
    // Read this before waiting: the value is gone if the user leaves the page meanwhile.
    let (come_back, submits) = form.shared.try_get_value().unwrap_or_default();
    let answer = crate::client::post(form.address, &fields).await;
    // The signals are gone if the user has left the page.
    form.pending.try_set(false);
    if let Some(come_back) = come_back {
        come_back.try_set_value(None);
    }
    let outcome = match &answer {
        Ok(_) => Outcome::Accepted,
        Err(_) => Outcome::Refused,
    };
    if let Some(Submits { last, focuses_notice }) = submits {
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

/// Focuses an element as soon as it is shown.
fn focus_soon(node: NodeRef<leptos::html::Div>) {
    request_animation_frame(move || {
        if let Some(element) = node.try_get_untracked().flatten() {
            let _ = element.focus();
        }
    });
}

/// Shows a form's problem. When the problem appears, screen readers announce it and it gets the
/// focus, so that the next Tab leads to the fields. Without scripts, the page opens at this
/// element.
#[component]
pub fn FormAlert(form: FormState) -> impl IntoView {
    let node = NodeRef::new();
    Effect::new(move || {
        if form.problem.with(Option::is_some) {
            focus_soon(node);
        }
    });
    let anchor = form.has_anchor.then(|| problem_anchor(form.address));
    let cause = move || form.problem.with(|problem| Some(problem.as_ref()?.cause.clone()));
    let sentence = move || form.problem.with(|problem| Some(problem.as_ref()?.sentence()));
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

/// The notice that a form was accepted. It is shown while the page's address has this parameter.
#[component]
pub fn AcceptedNotice(parameter: &'static str, sentence: &'static str) -> impl IntoView {
    let query = use_query_map();
    let notice = Signal::derive(move || {
        query.with(|query| query.get(parameter).map(|_| Notice::of(sentence)))
    });
    view! { <NoticeSlot notice parameters=vec![parameter]/> }
}

/// A sentence about what was done, with links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub sentence: Cow<'static, str>,
    /// The addresses and the texts of the links.
    pub links: Vec<(String, String)>,
}

impl Notice {
    /// Creates a notice without links.
    pub const fn of(sentence: &'static str) -> Self {
        Self { sentence: Cow::Borrowed(sentence), links: Vec::new() }
    }
}

/// Shows a notice, unless a form was refused later. When it appears, screen readers announce it and
/// it gets the focus.
#[component]
pub fn NoticeSlot(
    notice: Signal<Option<Notice>>,
    /// The parameters of the address that the notice is read from.
    parameters: Vec<&'static str>,
) -> impl IntoView {
    let submits = use_context::<Submits>();
    let shown = move || {
        let refused = submits.is_some_and(Submits::was_refused);
        notice.get().filter(|_| !refused)
    };
    let node = NodeRef::new();
    Effect::new(move || {
        let Some(submits) = submits else { return };
        submits.last.track();
        if shown().is_some() {
            forget(&parameters);
        }
        if shown().is_some() && submits.focuses_notice.get_value() {
            submits.focuses_notice.set_value(false);
            focus_soon(node);
        }
    });
    let link = |(href, text): (String, String)| view! { " " <a href=href>{text}</a> };
    view! {
        <div class="status-slot" role="status" tabindex="-1" node_ref=node>
            {move || {
                shown()
                    .map(|Notice { sentence, links }| {
                        let links: Vec<_> = links.into_iter().map(link).collect();
                        view! { <p class="notice notice-good">{sentence} {links}</p> }
                    })
            }}
        </div>
    }
}

#[cfg(not(feature = "hydrate"))]
const fn forget(_parameters: &[&str]) {}

/// Removes parameters from the address in the browser. Otherwise a notice would be shown again
/// after a reload or on the way back, when it isn't true any more. The router keeps the address as
/// it was, so the notice stays until another page opens.
#[cfg(feature = "hydrate")]
fn forget(parameters: &[&str]) {
    let location = window().location();
    let (Ok(search), Ok(hash)) = (location.search(), location.hash()) else { return };
    let pairs = search.trim_start_matches('?').split('&');
    let is_kept = |pair: &&str| !parameters.contains(&pair.split('=').next().unwrap_or_default());
    let kept = pairs.filter(is_kept).collect::<Vec<_>>().join("&");
    let (Ok(path), Ok(history)) = (location.pathname(), window().history()) else { return };
    let question = if kept.is_empty() { "" } else { "?" };
    let address = format!("{path}{question}{kept}{hash}");
    let state = history.state().unwrap_or_default();
    let _ = history.replace_state_with_url(&state, "", Some(&address));
}

/// A form's submit button. Clicks are ignored while a response is pending.
#[component]
pub fn SubmitButton(
    label: &'static str,
    form: FormState,
    /// Whether this is the page's main action.
    #[prop(optional)]
    primary: bool,
    /// Whether the action deletes something.
    #[prop(optional)]
    danger: bool,
    /// A field that only this button adds to the form: name and value.
    #[prop(optional)]
    field: Option<(&'static str, &'static str)>,
    /// The subject of the action. Needed if the page has several such buttons, as the rows of a
    /// table do. Screen readers read it after the label.
    #[prop(optional, into)]
    about: String,
) -> impl IntoView {
    let (name, value) = field.unzip();
    let class = match (primary, danger) {
        (_, true) => "button button-danger",
        (true, false) => "button button-primary",
        (false, false) => "button",
    };
    view! {
        <button
            type="submit"
            class=class
            name=name
            value=value
            // Disabling the button would drop the focus.
            aria-disabled=move || form.pending.get().then_some("true")
        >
            {label}
            {about_text(about)}
        </button>
    }
}

/// Renders what a control is about, for screen readers.
pub fn about_text(about: String) -> impl IntoView {
    (!about.is_empty()).then(|| view! { <span class="visually-hidden">" "{about}</span> })
}
