//! The frame of every page: header, navigation, footer.

use leptos::either::Either;
use leptos::prelude::*;
use leptos_router::components::{A, Outlet};
use leptos_router::hooks::use_location;

use super::{FormState, Mark, NotFound, PostForm, SessionNotice, Submits};
use crate::account::{LoadViewer, SignOut, Viewer};
use crate::page_data::PageData;
use crate::problem::{ComeBack, TWO_FACTOR_PATH};
use crate::time_zone::ShownZone;

/// Header, page and footer. The header shows who is signed in.
#[component]
pub fn Frame() -> impl IntoView {
    let sign_out = FormState::new::<SignOut>("sign-out-alert");
    let path = use_location().pathname;
    // The server makes the header and the rest of the page on several threads at once. The library
    // panics when two of them are the first to read a memo: so it is read before they begin.
    path.with_untracked(|_| ());
    // Loaded again on each page: signing in, signing out and an ended session all lead to another
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
        // The browser follows it: the router would scroll there and leave the focus where it is.
        <a class="skip" href="#main" rel="external">"Skip to the content"</a>
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
        <main id="main" tabindex="-1">
            <Outlet/>
        </main>
        <footer class="foot">
            <p>
                "Heliograph sends text messages for your systems, by one HTTP API. "
                {move || times_are(&path.get())}
            </p>
        </footer>
    }
}

/// The zone in which a page shows times, in words.
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
    let Viewer {
        account,
        must_set_up,
        ..
    } = viewer;
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
        // On a narrow screen the navigation is a menu, which opens without scripts too. It is made
        // anew on each page, and so closes when a link is followed.
        <button type="button" class="button button-quiet menu" popovertarget="navigation">
            "Menu"
        </button>
        <nav id="navigation" class="nav" popover="auto" aria-label="Main">
            {links}
        </nav>
        <div class="whoami">
            <span class="whoami-mail">{account.email}</span>
            <PostForm form=sign_out inline=true>
                <button type="submit" class="button button-quiet">"Sign out"</button>
            </PostForm>
        </div>
    }
}

#[component]
fn VisitorBar(path: Memo<String>) -> impl IntoView {
    // These pages have a link to the sign-in page in their text.
    let offer = move || !matches!(path.get().as_str(), "/" | "/login" | "/register");
    view! {
        <nav class="nav" aria-label="Main">
            <A href="/docs" attr:rel="external">"API"</A>
            {move || offer().then(|| view! { <A href="/login">"Sign in"</A> })}
        </nav>
    }
}

/// The header of pages that don't show who is signed in.
#[component]
pub fn PlainHeader() -> impl IntoView {
    let links = [
        ("/applications", "My Applications"),
        ("/reports", "Reports"),
        ("/account", "Account"),
        ("/docs", "API"),
    ];
    // The browser has no code for the reference: it loads that page anew.
    let rel = |path| (path == "/docs").then_some("external");
    let links = links.map(|(path, name)| view! { <a href=path rel=rel(path)>{name}</a> });
    view! {
        <header class="bar">
            <div class="bar-inner">
                <Brand/>
                <nav class="nav" aria-label="Main">
                    {links.into_iter().collect_view()}
                </nav>
            </div>
        </header>
    }
}

/// The page for addresses without a route. It stands outside the routes, where nothing may wait for
/// data: so its header doesn't show who is signed in.
#[component]
pub fn LostPage() -> impl IntoView {
    view! {
        <PlainHeader/>
        <main id="main" tabindex="-1">
            <NotFound/>
        </main>
    }
}
