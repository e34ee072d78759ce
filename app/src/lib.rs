//! The portal. One build is for the server, which renders the pages (`ssr`). Two builds are for the
//! browser, which hydrates them (`hydrate`): one for customers, and one that also has the staff
//! pages (`support`).
//!
//! A page and its server functions share a file. A server function parses its arguments, calls one
//! method of the service and returns the result. On the server, `current_request` identifies the
//! caller.

// The type of a page's view nests as deeply as the page's elements.
#![recursion_limit = "512"]
#![expect(
    clippy::needless_pass_by_value,
    reason = "components own their properties; the macro takes no references"
)]

pub mod account;
pub mod applications;
pub mod client;
pub mod counter;
pub mod docs;
#[cfg(feature = "ssr")]
pub mod document;
pub mod file_check;
#[cfg(feature = "ssr")]
pub mod footer;
pub mod home;
pub mod incidents;
pub mod opt_outs;
#[cfg(feature = "ssr")]
pub mod overload;
pub mod page_data;
#[cfg(feature = "ssr")]
pub mod portal_request;
mod price_table;
pub mod problem;
pub mod reports;
#[cfg(feature = "ssr")]
pub mod request_id;
pub mod support;
pub mod time_zone;
pub mod ui;
pub mod webhooks;

use leptos::prelude::*;
use leptos_router::SsrMode;
#[cfg(not(any(feature = "ssr", feature = "support")))]
use leptos_router::components::Outlet;
use leptos_router::components::{ParentRoute, Route, Router, Routes};
use leptos_router::path;

use account::{
    AccountPage, BillingPage, ChangeEmailPage, ClosePage, ConfirmPage, DevicesPage, ForgotPage,
    NumberPage, RegisterPage, ResetPage, SignInCodePage, SignInPage, StopEmailChangePage,
    TwoFactorPage,
};
use applications::{
    ApplicationPage, ApplicationsPage, CodesPage, DepositSlipPage, InboxPage, KeysPage,
    MessagesPage, NewApplicationPage, QuickStartPage, ReceiptPage, SenderNamePage, SettingsPage,
    StatementPage,
};
use docs::DocsPage;
use file_check::FileCheckPage;
use home::HomePage;
use opt_outs::OptOutsPage;
use problem::{ComeBack, ReturnedForm};
use reports::{ReportPage, ReportsPage};
#[cfg(any(feature = "ssr", feature = "support"))]
use support::{
    ApprovalsPage, AssignPage, AuditPage, CarrierReceiptsPage, CarriersPage, ConfirmActPage,
    DepositsPage, DeskFrame, ImportPage, MailsPage, MarginPage, NumbersPage, SendersPage,
    SupportAccountPage, SupportAccountsPage, SupportApplicationsPage, SupportMessagePage,
    SupportPage, SupportPricesPage, SupportSearchPage, UnassignedPage, VisitPage,
};
use time_zone::ShownZone;
use ui::{Frame, LostPage, Submits};
use webhooks::{EndpointPage, WebhookEventPage, WebhooksPage};

/// The pages. The server renders each page completely before it sends the first byte
/// (`SsrMode::Async`, which also applies to the nested routes). Pages are small, and this way each
/// page is the same with and without JavaScript.
#[component]
pub fn App() -> impl IntoView {
    #[cfg(feature = "ssr")]
    leptos_meta::provide_meta_context();
    let come_back: ComeBack = StoredValue::new(SharedValue::new(returned_form).into_inner());
    provide_context(come_back);
    ShownZone::provide();
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
                    <Route path=path!("/applications/:reference/inbound") view=InboxPage/>
                    <Route path=path!("/applications/:reference/optouts") view=OptOutsPage/>
                    <Route path=path!("/applications/:reference/statement") view=StatementPage/>
                    <Route path=path!("/applications/:reference/slip") view=DepositSlipPage/>
                    <Route
                        path=path!("/applications/:reference/deposits/:bank_id")
                        view=ReceiptPage
                    />
                    <Route path=path!("/applications/:reference/sender") view=SenderNamePage/>
                    <Route path=path!("/applications/:reference/keys") view=KeysPage/>
                    <Route path=path!("/applications/:reference/webhooks") view=WebhooksPage/>
                    <Route
                        path=path!("/applications/:reference/webhooks/:webhook")
                        view=EndpointPage
                    />
                    <Route
                        path=path!("/applications/:reference/webhooks/:webhook/:event")
                        view=WebhookEventPage
                    />
                    <Route path=path!("/applications/:reference/settings") view=SettingsPage/>
                    <Route path=path!("/applications/:reference/verify") view=CodesPage/>
                    <Route path=path!("/applications/:reference/check-file") view=FileCheckPage/>
                    <Route path=path!("/applications/:reference/start") view=QuickStartPage/>
                    <Route path=path!("/reports") view=ReportsPage/>
                    <Route path=path!("/reports/:id") view=ReportPage/>
                    <Route path=path!("/devices") view=DevicesPage/>
                    <Route path=path!("/account") view=AccountPage/>
                    <Route path=path!("/account/billing") view=BillingPage/>
                    <Route path=path!("/account/close") view=ClosePage/>
                    <Route path=path!("/account/number") view=NumberPage/>
                    <Route path=path!("/account/email/:token") view=ChangeEmailPage/>
                    <Route path=path!("/account/email/stop/:token") view=StopEmailChangePage/>
                    <Route path=path!("/account/two-factor") view=TwoFactorPage/>
                    <Route path=path!("/docs") view=DocsPage/>
                    <SupportRoutes/>
                </ParentRoute>
            </Routes>
        </Router>
    }
}

/// The staff pages.
#[cfg(any(feature = "ssr", feature = "support"))]
#[component(transparent)]
fn SupportRoutes() -> impl leptos_router::MatchNestedRoutes + Clone {
    view! {
        <ParentRoute path=path!("") view=DeskFrame>
            <Route path=path!("/support") view=SupportPage/>
            <Route path=path!("/support/confirm") view=ConfirmActPage/>
            <Route path=path!("/support/carriers") view=CarriersPage/>
            <Route path=path!("/support/carriers/:name/receipts") view=CarrierReceiptsPage/>
            <Route path=path!("/support/applications") view=SupportApplicationsPage/>
            <Route path=path!("/support/applications/:reference") view=VisitPage/>
            <Route path=path!("/support/senders") view=SendersPage/>
            <Route path=path!("/support/deposits") view=DepositsPage/>
            <Route path=path!("/support/deposits/assign") view=AssignPage/>
            <Route path=path!("/support/import") view=ImportPage/>
            <Route path=path!("/support/mail") view=MailsPage/>
            <Route path=path!("/support/numbers") view=NumbersPage/>
            <Route path=path!("/support/inbound") view=UnassignedPage/>
            <Route path=path!("/support/prices") view=SupportPricesPage/>
            <Route path=path!("/support/margin") view=MarginPage/>
            <Route path=path!("/support/approvals") view=ApprovalsPage/>
            <Route path=path!("/support/accounts") view=SupportAccountsPage/>
            <Route path=path!("/support/accounts/:account") view=SupportAccountPage/>
            <Route path=path!("/support/search") view=SupportSearchPage/>
            <Route path=path!("/support/messages/:transid") view=SupportMessagePage/>
            <Route path=path!("/support/audit") view=AuditPage/>
        </ParentRoute>
    }
    .into_inner()
}

/// The staff pages. A customer's browser has no code for them.
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

/// Makes the browser load the page from the server, which sends the code that this build lacks.
#[cfg(not(feature = "ssr"))]
#[component]
fn OpenAnew() -> impl IntoView {
    let location = leptos_router::hooks::use_location();
    Effect::new(move || {
        let (path, search) = (location.pathname.get(), location.search.get());
        let hash = location.hash.get();
        let address = match search.as_str() {
            "" => format!("{path}{hash}"),
            search => format!("{path}?{search}{hash}"),
        };
        let browser = window().location();
        // Back and forward change the address before the page. In that case the page has to be
        // reloaded.
        let is_shown = browser.pathname().is_ok_and(|shown| shown == path);
        // If the browser refuses, its address bar still has the page's address to open by hand.
        let _ = if is_shown { browser.reload() } else { browser.assign(&address) };
    });
    view! { <p class="loading">"Loading…"</p> }
}

/// Returns the form that came back to the requested page. The browser reads it from the page,
/// because the cookie is hidden from scripts.
fn returned_form() -> Option<ReturnedForm> {
    #[cfg(feature = "ssr")]
    return use_context::<portal_request::CurrentRequest>()?.returned_form();
    #[cfg(not(feature = "ssr"))]
    None
}
