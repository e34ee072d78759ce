//! The frame of every page: header, navigation, footer.

use leptos::either::Either;
use leptos::prelude::*;
use leptos_router::components::{A, Outlet};
use leptos_router::hooks::use_location;

use super::{FormState, Mark, NotFound, PostForm, SessionNotice, Submits};
use crate::account::{LoadViewer, SignOut, Viewer};
use crate::client::call;
use crate::problem::{ComeBack, TWO_FACTOR_PATH};

/// Header, page and footer. The header shows who is signed in.
#[component]
pub fn Frame() -> impl IntoView {
    let sign_out = FormState::new::<SignOut>("sign-out-alert");
    let path = use_location().pathname;
    // Loaded again on each page: signing in, signing out and an ended session all lead to another
    // page.
    let viewer = Resource::new(
        move || (path.get(), sign_out.accepted.get()),
        |_| call(LoadViewer {}),
    );
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
        }
        path
    });

    view! {
        <a class="skip" href="#main">"Skip to the content"</a>
        <header class="bar">
            <div class="bar-inner">
                <Brand/>
                <Transition>
                    {move || Suspend::new(async move {
                        match viewer.await {
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
                "Heliograph sends text messages for your systems, by one HTTP API. Times are UTC."
            </p>
        </footer>
    }
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
            <A href="/devices">"Devices"</A>
            <A href="/account">"Account"</A>
            <A href="/docs">"API"</A>
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
            <A href="/docs">"API"</A>
            {move || offer().then(|| view! { <A href="/login">"Sign in"</A> })}
        </nav>
    }
}

/// The page for addresses without a route. It stands outside the routes, where nothing may wait for
/// data: so its header doesn't show who is signed in.
#[component]
pub fn LostPage() -> impl IntoView {
    view! {
        <header class="bar">
            <div class="bar-inner">
                <Brand/>
                <nav class="nav" aria-label="Main">
                    <A href="/applications">"My Applications"</A>
                    <A href="/docs">"API"</A>
                </nav>
            </div>
        </header>
        <main id="main" tabindex="-1">
            <NotFound/>
        </main>
    }
}
