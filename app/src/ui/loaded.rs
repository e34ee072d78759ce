//! Pages, and what is shown instead while their data is loaded or when it can't be.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use leptos_router::location::Url;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::{Cause, Problem, TWO_FACTOR_PATH};

/// Marks the document once the page is hydrated: the browser tests wait for that. Effects run in
/// the browser alone.
pub fn mark_live() {
    Effect::new(|_| {
        if let Some(root) = document().document_element() {
            let _ = root.set_attribute("data-live", "");
        }
    });
}

/// A page: its title in the browser, its heading, its content.
#[component]
pub fn Page(
    #[prop(into)] title: String,
    /// Which of several pages with this heading it is, for the title in the browser.
    #[prop(optional, into)]
    section: Option<String>,
    /// The page's one primary action, beside the heading.
    #[prop(optional, into)]
    action: Option<AnyView>,
    children: Children,
) -> impl IntoView {
    mark_live();
    let name = match section {
        Some(section) => format!("{section} · {title} · Heliograph"),
        None => format!("{title} · Heliograph"),
    };
    view! {
        <Title text=name/>
        <div class="page-head">
            <h1>{title}</h1>
            {action}
        </div>
        {children()}
    }
}

/// Shows data once it is loaded, or why it can't be.
#[component]
pub fn Loaded<T, V, R>(
    data: Resource<Result<T, Problem>>,
    /// Makes the view of the data.
    render: R,
) -> impl IntoView
where
    T: Clone + Send + Sync + Serialize + DeserializeOwned + 'static,
    V: IntoView + 'static,
    R: Fn(T) -> V + Clone + Send + Sync + 'static,
{
    view! {
        <Transition fallback=|| view! { <p class="loading">"Loading…"</p> }>
            {move || {
                let render = render.clone();
                Suspend::new(async move {
                    match data.await {
                        Ok(data) => render(data).into_any(),
                        Err(problem) => view! { <ProblemPage problem/> }.into_any(),
                    }
                })
            }}
        </Transition>
    }
}

/// The page that is shown instead of one that can't be shown: it says why.
#[component]
pub fn ProblemPage(problem: Problem) -> impl IntoView {
    #[cfg(feature = "ssr")]
    crate::portal_request::set_status(&problem.cause);
    match problem.cause {
        Cause::SignedOut => view! { <LeaveToSignIn/> }.into_any(),
        Cause::SecondFactorMissing => view! { <LeaveToSetUp/> }.into_any(),
        Cause::NotFound => view! { <NotFound/> }.into_any(),
        cause => view! {
            <Page title="This page can't be shown">
                <p class="alert" role="alert">{cause.sentence()}</p>
                <p>
                    <a href="/applications">"Go to My Applications"</a>
                </p>
            </Page>
        }
        .into_any(),
    }
}

/// The page for addresses that lead to nothing.
#[component]
pub fn NotFound() -> impl IntoView {
    #[cfg(feature = "ssr")]
    crate::portal_request::set_status(&Cause::NotFound);
    view! {
        <Page title="Nothing here">
            <p>
                "There is no page at this address. The address may be mistyped, or belong to \
                 something of another account."
            </p>
            <p>
                <a href="/applications">"Go to My Applications"</a>
            </p>
        </Page>
    }
}

/// Leads to the page on which a second factor is set up, where scripts run.
#[component]
pub fn LeaveToSetUp() -> impl IntoView {
    let navigate = use_navigate();
    Effect::new(move || navigate(TWO_FACTOR_PATH, replacing()));
    view! {
        <p>
            "Your account needs a second factor. " <a href=TWO_FACTOR_PATH>"Set it up"</a>
        </p>
    }
}

fn replacing() -> NavigateOptions {
    NavigateOptions {
        replace: true,
        ..NavigateOptions::default()
    }
}

/// Leads to the sign-in page, and from there back to this page. The server redirects by itself;
/// this is for a session that ends while the page is open.
#[component]
pub fn LeaveToSignIn() -> impl IntoView {
    let location = use_location();
    let navigate = use_navigate();
    Effect::new(move || {
        let path = location.pathname.get_untracked();
        let search = location.search.get_untracked();
        let here = if search.is_empty() {
            path
        } else {
            format!("{path}?{search}")
        };
        let target = format!("/login?next={}", Url::escape(&here));
        navigate(&target, replacing());
    });
    view! {
        <p>
            "You are signed out. " <a href="/login">"Sign in"</a>
        </p>
    }
}
