//! The portal, built twice: for the server, which renders pages (`ssr`), and for the browser, which
//! hydrates them (`hydrate`).
//!
//! A page and its server functions share a file. A server function parses its arguments, calls one
//! verb of the service and answers. In the server's build `current_request` says who is asking.

// The type of a page's view is nested as deeply as its elements are.
#![recursion_limit = "512"]
#![expect(
    clippy::needless_pass_by_value,
    reason = "components own their properties; the macro takes no references"
)]

pub mod account;
pub mod applications;
pub mod client;
pub mod docs;
pub mod home;
pub mod incidents;
#[cfg(feature = "ssr")]
pub mod overload;
#[cfg(feature = "ssr")]
pub mod portal_request;
mod price_table;
pub mod problem;
pub mod reports;
pub mod support;
pub mod ui;

use domain::Theme;
use leptos::prelude::*;
use leptos_meta::{HashedStylesheet, MetaTags, provide_meta_context};
use leptos_router::SsrMode;
use leptos_router::components::{Outlet, ParentRoute, Route, Router, Routes};
use leptos_router::path;

use account::{
    AccountPage, ChangeEmailPage, ClosePage, ConfirmPage, DevicesPage, ForgotPage, RegisterPage,
    ResetPage, SignInCodePage, SignInPage, TwoFactorPage,
};
use applications::{
    ApplicationPage, ApplicationsPage, KeysPage, MessagesPage, NewApplicationPage, QuickStartPage,
    SenderNamePage, SettingsPage, StatementPage,
};
use docs::DocsPage;
use home::HomePage;
use problem::{ComeBack, ReturnedForm};
use reports::{ReportPage, ReportsPage};
#[cfg(any(feature = "ssr", feature = "support"))]
use support::{
    AssignPage, AuditPage, CarriersPage, DepositsPage, ImportPage, MailsPage, MarginPage,
    SendersPage, SupportAccountPage, SupportAccountsPage, SupportApplicationsPage,
    SupportMessagePage, SupportPage, SupportPricesPage, SupportSearchPage, VisitPage,
};
use ui::{Frame, LostPage, Submits};

/// The document around the pages.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    let code = code_of_page(&options);
    let theme = theme();
    view! {
        <!DOCTYPE html>
        <html lang="en" data-theme=theme.as_str()>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content=color_scheme(theme)/>
                <meta
                    name="description"
                    content="Heliograph sends text messages for your systems, by one HTTP API."
                />
                <link rel="icon" type="image/svg+xml" href="/favicon.svg"/>
                <HashedStylesheet options=options.clone() id="leptos"/>
                <AutoReload options/>
                <HydrationScripts options=code/>
                <MetaTags/>
            </head>
            <body>
                <App/>
            </body>
        </html>
    }
}

/// Where the code is that the browser runs for the requested page: only pages of staff have the code
/// of pages of staff, so that customers needn't load it.
fn code_of_page(options: &LeptosOptions) -> LeptosOptions {
    let request = use_context::<http::request::Parts>();
    let is_support = request.is_some_and(|request| request.uri.path().starts_with("/support"));
    let mut options = options.clone();
    // While developing there is one code for all pages.
    if is_support && options.hash_files {
        options.output_name = "support".into();
        options.hash_file = options
            .hash_file
            .replace("hash.txt", "support-hash.txt")
            .into();
    }
    options
}

/// The pages. The server renders a page as a whole before it sends any of it (`SsrMode::Async`,
/// which goes for the routes below too): a page is small, and so it is the same with and without
/// JavaScript.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    let come_back: ComeBack = StoredValue::new(SharedValue::new(returned_form).into_inner());
    provide_context(come_back);
    provide_context(Submits::new(come_back.with_value(Option::is_some)));

    view! {
        <Router>
            <Routes fallback=LostPage>
                <ParentRoute path=path!("") view=Frame ssr=SsrMode::Async>
                    <Route path=path!("/") view=HomePage/>
                    <Route path=path!("/register") view=RegisterPage/>
                    <Route path=path!("/login") view=SignInPage/>
                    <Route path=path!("/login/code") view=SignInCodePage/>
                    <Route path=path!("/forgot") view=ForgotPage/>
                    <Route path=path!("/reset/:token") view=ResetPage/>
                    <Route path=path!("/confirm/:token") view=ConfirmPage/>
                    <Route path=path!("/applications") view=ApplicationsPage/>
                    <Route path=path!("/applications/new") view=NewApplicationPage/>
                    <Route path=path!("/applications/:reference") view=ApplicationPage/>
                    <Route path=path!("/applications/:reference/messages") view=MessagesPage/>
                    <Route path=path!("/applications/:reference/statement") view=StatementPage/>
                    <Route path=path!("/applications/:reference/sender") view=SenderNamePage/>
                    <Route path=path!("/applications/:reference/keys") view=KeysPage/>
                    <Route path=path!("/applications/:reference/settings") view=SettingsPage/>
                    <Route path=path!("/applications/:reference/start") view=QuickStartPage/>
                    <Route path=path!("/reports") view=ReportsPage/>
                    <Route path=path!("/reports/:id") view=ReportPage/>
                    <Route path=path!("/devices") view=DevicesPage/>
                    <Route path=path!("/account") view=AccountPage/>
                    <Route path=path!("/account/close") view=ClosePage/>
                    <Route path=path!("/account/email/:token") view=ChangeEmailPage/>
                    <Route path=path!("/account/two-factor") view=TwoFactorPage/>
                    <Route path=path!("/docs") view=DocsPage/>
                    <SupportRoutes/>
                </ParentRoute>
            </Routes>
        </Router>
    }
}

/// The pages of staff.
#[cfg(any(feature = "ssr", feature = "support"))]
#[component(transparent)]
fn SupportRoutes() -> impl leptos_router::MatchNestedRoutes + Clone {
    view! {
        <ParentRoute path=path!("") view=Outlet>
            <Route path=path!("/support") view=SupportPage/>
            <Route path=path!("/support/carriers") view=CarriersPage/>
            <Route path=path!("/support/applications") view=SupportApplicationsPage/>
            <Route path=path!("/support/senders") view=SendersPage/>
            <Route path=path!("/support/deposits") view=DepositsPage/>
            <Route path=path!("/support/deposits/assign") view=AssignPage/>
            <Route path=path!("/support/import") view=ImportPage/>
            <Route path=path!("/support/mail") view=MailsPage/>
            <Route path=path!("/support/prices") view=SupportPricesPage/>
            <Route path=path!("/support/margin") view=MarginPage/>
            <Route path=path!("/support/accounts") view=SupportAccountsPage/>
            <Route path=path!("/support/accounts/:account") view=SupportAccountPage/>
            <Route
                path=path!("/support/accounts/:account/:reference")
                view=VisitPage
            />
            <Route path=path!("/support/search") view=SupportSearchPage/>
            <Route path=path!("/support/messages/:transid") view=SupportMessagePage/>
            <Route path=path!("/support/audit") view=AuditPage/>
        </ParentRoute>
    }
    .into_inner()
}

/// The pages of staff, which a customer's browser has no code for.
#[cfg(not(any(feature = "ssr", feature = "support")))]
#[component(transparent)]
fn SupportRoutes() -> impl leptos_router::MatchNestedRoutes + Clone {
    view! {
        <ParentRoute path=path!("") view=Outlet>
            <Route path=path!("/support") view=OpenAnew/>
            <Route path=path!("/support/*rest") view=OpenAnew/>
        </ParentRoute>
    }
    .into_inner()
}

/// Has the browser load the page from the server, which sends the code of all pages with it.
#[cfg(not(any(feature = "ssr", feature = "support")))]
#[component]
fn OpenAnew() -> impl IntoView {
    let location = leptos_router::hooks::use_location();
    Effect::new(move || {
        let (path, search) = (location.pathname.get(), location.search.get());
        let address = match search.as_str() {
            "" => path,
            search => format!("{path}?{search}"),
        };
        // A browser that refuses shows the page's address, which can be opened by hand.
        let _ = window().location().assign(&address);
    });
    view! { <p class="loading">"Loading…"</p> }
}

/// The colours that the browser last saw the portal in: the page has them from its first moment on.
fn theme() -> Theme {
    #[cfg(feature = "ssr")]
    if let Some(request) = use_context::<portal_request::CurrentRequest>() {
        return request.theme();
    }
    Theme::default()
}

/// The colours of what the browser draws before it has the styles.
const fn color_scheme(theme: Theme) -> &'static str {
    match theme {
        Theme::System => "light dark",
        Theme::Light => "light",
        Theme::Dark => "dark",
    }
}

/// The form that came back to the requested page. The browser reads it in the page, as the server
/// found it: the cookie is kept from scripts.
fn returned_form() -> Option<ReturnedForm> {
    #[cfg(feature = "ssr")]
    return use_context::<portal_request::CurrentRequest>()?.returned_form();
    #[cfg(not(feature = "ssr"))]
    None
}
