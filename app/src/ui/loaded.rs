//! Pages, and their replacements while the data loads or when it can't be loaded.

use std::sync::Arc;

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use leptos_router::location::Url;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::page_data::{Answer, PageData};
use crate::problem::{Cause, Problem, TWO_FACTOR_PATH};

/// Marks the document once the page is hydrated. The browser tests wait for this mark. Effects run
/// only in the browser.
pub fn mark_live() {
    Effect::new(|_| {
        if let Some(root) = document().document_element() {
            let _ = root.set_attribute("data-live", "");
        }
    });
}

/// Sets the page's title in the browser.
pub fn set_title(title: String) {
    // The server collects titles while it renders. This view itself shows nothing.
    #[cfg(feature = "ssr")]
    drop(view! { <leptos_meta::Title text=title/> });
    #[cfg(not(feature = "ssr"))]
    Effect::new(move || document().set_title(&title));
}

/// A page: the title in the browser, the heading and the content.
#[component]
pub fn Page(
    #[prop(into)] title: String,
    /// The page above this one: its path and its name.
    #[prop(optional)]
    back: Option<(&'static str, &'static str)>,
    /// The part of the browser's title that distinguishes pages with the same heading.
    #[prop(optional, into)]
    section: Option<String>,
    /// The page's primary action, next to the heading.
    #[prop(optional, into)]
    action: Option<AnyView>,
    /// Whether the focus begins at the heading, so that it is read before the buttons.
    #[prop(optional)]
    focused: bool,
    children: Children,
) -> impl IntoView {
    mark_live();
    let name = match section {
        Some(section) => format!("{section} · {title} · Heliograph"),
        None => format!("{title} · Heliograph"),
    };
    set_title(name);
    view! {
        <div class="page-head">
            <h1 tabindex=focused.then_some("-1") autofocus=focused>{title}</h1>
            {action}
        </div>
        {back.map(|(path, name)| view! { <p class="back"><a href=path>{name}</a></p> })}
        {children()}
    }
}

/// Shows the data once it is loaded, or why it can't be loaded.
#[component]
pub fn Loaded<T, V, R>(
    data: PageData<T>,
    /// Renders the data.
    render: R,
) -> impl IntoView
where
    T: Clone + Send + Sync + Serialize + DeserializeOwned + 'static,
    V: IntoView + 'static,
    R: Fn(T) -> V + Send + Sync + 'static,
{
    let render = move |answer: Answer| match answer.read() {
        Ok(data) => render(data).into_any(),
        Err(problem) => view! { <ProblemPage problem/> }.into_any(),
    };
    shown(data.answer, Arc::new(render))
}

/// Shows a result once it has arrived. All pages share this function (see `page_data`).
fn shown(
    answer: Resource<Result<Answer, Problem>>,
    render: Arc<dyn Fn(Answer) -> AnyView + Send + Sync>,
) -> AnyView {
    // Reloading the data replaces the element that had the focus.
    #[cfg(feature = "hydrate")]
    Effect::new(move |is_again: Option<bool>| {
        answer.track();
        if is_again.is_some() {
            request_animation_frame(super::focus::keep_focus);
        }
        true
    });
    view! {
        <Transition fallback=|| view! { <p class="loading">"Loading…"</p> }>
            {move || {
                let render = Arc::clone(&render);
                Suspend::new(async move {
                    match answer.await {
                        Ok(answer) => render(answer),
                        Err(problem) => view! { <ProblemPage problem/> }.into_any(),
                    }
                })
            }}
        </Transition>
    }
    .into_any()
}

/// Replaces a page that can't be shown, and says why.
#[component]
pub fn ProblemPage(problem: Problem) -> impl IntoView {
    #[cfg(feature = "ssr")]
    crate::portal_request::set_status(&problem.cause);
    let sentence = problem.sentence();
    match problem.cause {
        Cause::SignedOut => view! { <LeaveToSignIn/> }.into_any(),
        Cause::SecondFactorMissing => view! { <LeaveToSetUp/> }.into_any(),
        Cause::NotFound => view! { <NotFound/> }.into_any(),
        _ => view! {
            <Page title="This page can't be shown">
                <p class="alert" role="alert">{sentence}</p>
                <p><a href="/applications">"Go to My Applications"</a></p>
            </Page>
        }
        .into_any(),
    }
}

/// The request ID on a page that can't be shown. The browser doesn't know the ID, so it keeps the
/// server's text.
#[component]
fn RequestId() -> impl IntoView {
    #[cfg(feature = "ssr")]
    let text =
        crate::request_id::request_id().map_or_else(String::new, |id| format!("Request ID: {id}"));
    #[cfg(not(feature = "ssr"))]
    let text = "";
    view! { <p class="request-id" inner_html=text></p> }
}

/// The page for an address that leads to nothing.
#[component]
pub fn NotFound() -> impl IntoView {
    #[cfg(feature = "ssr")]
    crate::portal_request::set_status(&Cause::NotFound);
    view! {
        <Page title="Nothing here">
            <p>
                "There is no page at this address. The address may be mistyped, or it may belong \
                 to another account."
            </p>
            <RequestId/>
            <p><a href="/applications">"Go to My Applications"</a></p>
        </Page>
    }
}

/// Opens the page on which a second factor is set up, if scripts run.
#[component]
pub fn LeaveToSetUp() -> impl IntoView {
    let navigate = use_navigate();
    Effect::new(move || navigate(TWO_FACTOR_PATH, replacing()));
    view! { <p>"Your account needs a second factor. " <a href=TWO_FACTOR_PATH>"Set it up"</a></p> }
}

fn replacing() -> NavigateOptions {
    NavigateOptions { replace: true, ..NavigateOptions::default() }
}

/// Opens the sign-in page, which then returns to this page. Needed if a session ends while the page
/// is open; in all other cases the server redirects.
#[component]
pub fn LeaveToSignIn() -> impl IntoView {
    let location = use_location();
    let navigate = use_navigate();
    Effect::new(move || {
        let path = location.pathname.get_untracked();
        let search = location.search.get_untracked();
        let here = if search.is_empty() { path } else { format!("{path}?{search}") };
        let target = format!("/login?next={}", Url::escape(&here));
        navigate(&target, replacing());
    });
    view! { <p>"You are signed out. " <a href="/login">"Sign in"</a></p> }
}
