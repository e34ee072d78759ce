//! The portal. One build is for the server, which renders the pages (`ssr`). The other is for the
//! browser, which hydrates them (`hydrate`).
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
pub mod parts;
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
use leptos_router::components::{ParentRoute, Route, Router, Routes};
use leptos_router::path;

use parts::{Account, Application, Guest, Staff};
use problem::{ComeBack, ReturnedForm};
use time_zone::ShownZone;
use ui::{Frame, LostPage, Submits};

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
                    <Route path=path!("/") view=Guest::HomePage/>
                    <Route path=path!("/register") view=Guest::RegisterPage/>
                    <Route path=path!("/login") view=Guest::SignInPage/>
                    <Route path=path!("/login/code") view=Guest::SignInCodePage/>
                    <Route path=path!("/forgot") view=Guest::ForgotPage/>
                    <Route path=path!("/reset/:token") view=Guest::ResetPage/>
                    <Route path=path!("/confirm/:token") view=Guest::ConfirmPage/>
                    <Route path=path!("/applications") view=Application::ApplicationsPage/>
                    <Route path=path!("/applications/new") view=Application::NewApplicationPage/>
                    <Route
                        path=path!("/applications/:reference")
                        view=Application::ApplicationPage
                    />
                    <Route
                        path=path!("/applications/:reference/messages")
                        view=Application::MessagesPage
                    />
                    <Route
                        path=path!("/applications/:reference/inbound")
                        view=Application::InboxPage
                    />
                    <Route
                        path=path!("/applications/:reference/optouts")
                        view=Application::OptOutsPage
                    />
                    <Route
                        path=path!("/applications/:reference/statement")
                        view=Application::StatementPage
                    />
                    <Route
                        path=path!("/applications/:reference/slip")
                        view=Application::DepositSlipPage
                    />
                    <Route
                        path=path!("/applications/:reference/deposits/:bank_id")
                        view=Application::ReceiptPage
                    />
                    <Route
                        path=path!("/applications/:reference/sender")
                        view=Application::SenderNamePage
                    />
                    <Route path=path!("/applications/:reference/keys") view=Application::KeysPage/>
                    <Route
                        path=path!("/applications/:reference/webhooks")
                        view=Application::WebhooksPage
                    />
                    <Route
                        path=path!("/applications/:reference/webhooks/:webhook")
                        view=Application::EndpointPage
                    />
                    <Route
                        path=path!("/applications/:reference/webhooks/:webhook/:event")
                        view=Application::WebhookEventPage
                    />
                    <Route
                        path=path!("/applications/:reference/settings")
                        view=Application::SettingsPage
                    />
                    <Route
                        path=path!("/applications/:reference/verify")
                        view=Application::CodesPage
                    />
                    <Route
                        path=path!("/applications/:reference/check-file")
                        view=Application::FileCheckPage
                    />
                    <Route
                        path=path!("/applications/:reference/start")
                        view=Application::QuickStartPage
                    />
                    <Route path=path!("/reports") view=Account::ReportsPage/>
                    <Route path=path!("/reports/:id") view=Account::ReportPage/>
                    <Route path=path!("/devices") view=Account::DevicesPage/>
                    <Route path=path!("/account") view=Account::AccountPage/>
                    <Route path=path!("/account/billing") view=Account::BillingPage/>
                    <Route path=path!("/account/close") view=Account::ClosePage/>
                    <Route path=path!("/account/number") view=Account::NumberPage/>
                    <Route path=path!("/account/email/:token") view=Account::ChangeEmailPage/>
                    <Route
                        path=path!("/account/email/stop/:token")
                        view=Account::StopEmailChangePage
                    />
                    <Route path=path!("/account/two-factor") view=Account::TwoFactorPage/>
                    <Route path=path!("/docs") view=Guest::DocsPage/>
                    <SupportRoutes/>
                </ParentRoute>
            </Routes>
        </Router>
    }
}

/// The staff pages.
#[component(transparent)]
fn SupportRoutes() -> impl leptos_router::MatchNestedRoutes + Clone {
    view! {
        <ParentRoute path=path!("") view=Staff::DeskFrame>
            <Route path=path!("/support") view=Staff::SupportPage/>
            <Route path=path!("/support/confirm") view=Staff::ConfirmActPage/>
            <Route path=path!("/support/carriers") view=Staff::CarriersPage/>
            <Route path=path!("/support/carriers/:name/receipts") view=Staff::CarrierReceiptsPage/>
            <Route path=path!("/support/applications") view=Staff::SupportApplicationsPage/>
            <Route path=path!("/support/applications/:reference") view=Staff::VisitPage/>
            <Route path=path!("/support/senders") view=Staff::SendersPage/>
            <Route path=path!("/support/deposits") view=Staff::DepositsPage/>
            <Route path=path!("/support/deposits/assign") view=Staff::AssignPage/>
            <Route path=path!("/support/import") view=Staff::ImportPage/>
            <Route path=path!("/support/mail") view=Staff::MailsPage/>
            <Route path=path!("/support/numbers") view=Staff::NumbersPage/>
            <Route path=path!("/support/inbound") view=Staff::UnassignedPage/>
            <Route path=path!("/support/prices") view=Staff::SupportPricesPage/>
            <Route path=path!("/support/margin") view=Staff::MarginPage/>
            <Route path=path!("/support/approvals") view=Staff::ApprovalsPage/>
            <Route path=path!("/support/accounts") view=Staff::SupportAccountsPage/>
            <Route path=path!("/support/accounts/:account") view=Staff::SupportAccountPage/>
            <Route path=path!("/support/search") view=Staff::SupportSearchPage/>
            <Route path=path!("/support/messages/:transid") view=Staff::SupportMessagePage/>
            <Route path=path!("/support/audit") view=Staff::AuditPage/>
        </ParentRoute>
    }
    .into_inner()
}

/// Hydrates the page that the server rendered, once its code is loaded. If the code can't be loaded,
/// the page stays as it is: it works without scripts.
#[cfg(feature = "hydrate")]
pub async fn hydrate() {
    let path = window().location().pathname().unwrap_or_default();
    if parts::load(&path).await {
        leptos::mount::hydrate_body(App);
    }
}

/// Returns the form that came back to the requested page. The browser reads it from the page,
/// because the cookie is hidden from scripts.
fn returned_form() -> Option<ReturnedForm> {
    #[cfg(feature = "ssr")]
    return use_context::<portal_request::CurrentRequest>()?.returned_form();
    #[cfg(not(feature = "ssr"))]
    None
}
