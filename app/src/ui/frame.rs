//! The frame around every page: header, navigation, footer.

use leptos::either::Either;
use leptos::prelude::*;
use leptos_router::components::{A, Outlet};
use leptos_router::hooks::use_location;

use super::{FormState, Mark, NotFound, PostForm, SessionNotice, Submits};
use crate::account::{LoadViewer, SignOut, Viewer};
use crate::page_data::PageData;
use crate::problem::{ComeBack, TWO_FACTOR_PATH};
use crate::time_zone::ShownZone;

/// The header, the page and the footer. The header shows who is signed in.
#[component]
pub fn Frame() -> impl IntoView {
    let sign_out = FormState::new::<SignOut>("sign-out-alert");
    let path = use_location().pathname;
    // The server renders the header and the rest of the page on several threads. Leptos panics if
    // two threads read a memo for the first time at once, so read it here first.
    path.with_untracked(|_| ());
    // Reloaded on each page. Signing in, signing out and the end of a session all lead to another
    // page.
    let viewer = PageData::new(move || {
        path.track();
        sign_out.accepted.track();
        LoadViewer {}
    });
    let come_back = use_context::<ComeBack>();
    let submits = use_context::<Submits>();
    Effect::new(move |earlier: Option<String>| {
        let path = path.get();
        if earlier.is_some_and(|earlier| earlier != path) {
            if let Some(come_back) = come_back {
                come_back.set_value(None);
            }
            if let Some(submits) = submits {
                submits.leave_page();
            }
            #[cfg(feature = "hydrate")]
            super::focus::focus_content();
        }
        path
    });

    view! {
        // The browser follows this link. The router would scroll but not move the focus.
        <a class="skip" href=move || path.with(|path| content_of(path)) rel="external">
            "Skip to the content"
        </a>
        <header class="bar">
            <div class="bar-inner">
                <Brand/>
                <Transition>
                    {move || Suspend::new(async move {
                        match viewer.get().await {
                            Ok(Some(viewer)) => {
                                view! { <SignedInBar viewer sign_out/> }.into_any()
                            }
                            _ => view! { <VisitorBar path/> }.into_any(),
                        }
                    })}
                </Transition>
            </div>
        </header>
        <SessionNotice viewer/>
        <main id="main" tabindex="-1"><Outlet/></main>
        <footer class="foot">
            <p>
                "Heliograph sends text messages for your systems, through one HTTP API. "
                {move || times_are(&path.get())}
            </p>
            <Transition>
                {move || Suspend::new(async move {
                    let viewer = viewer.get().await.ok().flatten();
                    viewer.and_then(|viewer| viewer.version).map(|version| {
                        view! { <p>{format!("Heliograph {version}")}</p> }
                    })
                })}
            </Transition>
        </footer>
    }
}

/// Returns the anchor of a page's content. Staff have a navigation of their own before it.
fn content_of(path: &str) -> &'static str {
    if path.starts_with("/support") { "#desk-page" } else { "#main" }
}

/// Returns the sentence about the page's time zone.
fn times_are(path: &str) -> String {
    ShownZone::read(|zone| {
        if path.starts_with("/support") || zone.is_utc() {
            "Times are UTC.".to_owned()
        } else {
            format!("Times are in the time zone {}.", zone.name())
        }
    })
}

#[component]
fn Brand() -> impl IntoView {
    view! {
        <a class="brand" href="/">
            <Mark/>
            <span>"Heliograph"</span>
        </a>
    }
}

#[component]
fn SignedInBar(viewer: Viewer, sign_out: FormState) -> impl IntoView {
    let Viewer { account, must_set_up, .. } = viewer;
    let links = if must_set_up {
        Either::Left(view! { <A href=TWO_FACTOR_PATH>"Set up two-factor"</A> })
    } else {
        Either::Right(view! {
            <A href="/applications">"My Applications"</A>
            <A href="/reports">"Reports"</A>
            <A href="/devices">"Security"</A>
            <A href="/account">"Account"</A>
            <A href="/docs" attr:rel="external">"API"</A>
            {account.staff.then(|| view! { <A href="/support">"Support"</A> })}
        })
    };
    view! {
        // On a narrow screen, the navigation is a menu that opens without scripts. It is rendered
        // anew on each page, so it closes when a link is followed.
        <button type="button" class="button button-quiet menu" popovertarget="navigation">
            "Menu"
        </button>
        <nav id="navigation" class="nav" popover="auto" aria-label="Main">{links}</nav>
        <div class="whoami">
            <span class="whoami-mail" title=account.email.clone()>{account.email.clone()}</span>
            <PostForm form=sign_out inline=true>
                <button type="submit" class="button button-quiet">"Sign out"</button>
            </PostForm>
        </div>
    }
}

#[component]
fn VisitorBar(path: Memo<String>) -> impl IntoView {
    // These pages have their own link to the sign-in page.
    let offer = move || !matches!(path.get().as_str(), "/" | "/login" | "/register");
    view! {
        <nav class="nav" aria-label="Main">
            <A href="/docs" attr:rel="external">"API"</A>
            {move || offer().then(|| view! { <A href="/login">"Sign in"</A> })}
        </nav>
    }
}

/// A header that doesn't show who is signed in.
#[component]
pub fn PlainHeader() -> impl IntoView {
    let links = [
        ("/applications", "My Applications"),
        ("/reports", "Reports"),
        ("/account", "Account"),
        ("/docs", "API"),
    ];
    // The browser build has no code for the reference, so it loads that page from the server.
    let rel = |path| (path == "/docs").then_some("external");
    let links = links.map(|(path, name)| view! { <a href=path rel=rel(path)>{name}</a> });
    view! {
        <header class="bar">
            <div class="bar-inner">
                <Brand/>
                <nav class="nav" aria-label="Main">{links.into_iter().collect_view()}</nav>
            </div>
        </header>
    }
}

/// The page for addresses without a route. It is outside the routes, where nothing can wait for
/// data, so its header doesn't show who is signed in.
#[component]
pub fn LostPage() -> impl IntoView {
    view! {
        <PlainHeader/>
        <main id="main" tabindex="-1"><NotFound/></main>
    }
}
