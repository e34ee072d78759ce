//! The parts of the portal's WebAssembly. A browser loads a part before it shows the first of the
//! part's pages, so that no page waits for the code of all the others.
//!
//! `.make/build` divides the compiled program (feature `split`). The code that only one part uses
//! becomes a file, and so does the code that only some parts share. Everything else, for example
//! Leptos, is in the program that each page loads. A development build isn't divided.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

/// Returns the name of the part that has a page.
///
/// The browser hydrates a page at once, after it has loaded this part. With another part, hydrating
/// would fail.
pub fn part_of(path: &str) -> &'static str {
    match path.split('/').nth(1) {
        Some("applications") => "applications",
        Some("account" | "devices" | "reports") => "account",
        Some("support") => "staff",
        _ => "guests",
    }
}

/// Loads the part that has a page. Returns whether it is loaded.
#[cfg(feature = "hydrate")]
pub async fn load(path: &str) -> bool {
    let loaded = match part_of(path) {
        "applications" => applications::load().await,
        "account" => account::load().await,
        "staff" => staff::load().await,
        _ => guests::load().await,
    };
    loaded.is_ok()
}

/// Defines each part's pages as an enum, whose variants are the views of routes.
macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident in $part:ident { $($area:ident::$page:ident,)* })*) => {$(
        $(#[$doc])*
        pub use $part::Page as $name;

        mod $part {
            #[cfg(not(feature = "split"))]
            use std::future::{Ready, ready};

            use leptos::prelude::*;
            use leptos_router::ChooseView;
            use wasm_split_helpers::SplitLoaderError;
            #[cfg(feature = "split")]
            use wasm_split_helpers::wasm_split;

            use super::OpenAnew;

            #[derive(Clone, Copy)]
            pub enum Page {
                $($page,)*
            }

            impl Page {
                fn render(self) -> AnyView {
                    match self {
                        $(Self::$page => crate::$area::$page().into_any(),)*
                    }
                }
            }

            impl ChooseView for Page {
                async fn choose(self) -> AnyView {
                    match view(self).await {
                        Ok(view) => view,
                        Err(_) => view! { <OpenAnew/> }.into_any(),
                    }
                }

                async fn preload(&self) {
                    // If this fails, `choose` tries again and handles the error.
                    let _ = load().await;
                }
            }

            #[cfg(feature = "split")]
            #[wasm_split($part, fallible, preload(load))]
            pub(super) fn view(page: Page) -> Result<AnyView, SplitLoaderError> {
                Ok(page.render())
            }

            #[cfg(not(feature = "split"))]
            fn view(page: Page) -> Ready<Result<AnyView, SplitLoaderError>> {
                ready(Ok(page.render()))
            }

            #[cfg(not(feature = "split"))]
            pub(super) fn load() -> Ready<Result<(), SplitLoaderError>> {
                ready(Ok(()))
            }
        }
    )*};
}

parts! {
    /// The pages without an account.
    Guest in guests {
        account::ConfirmPage,
        account::ForgotPage,
        account::RegisterPage,
        account::ResetPage,
        account::SignInCodePage,
        account::SignInPage,
        docs::DocsPage,
        home::HomePage,
    }
    /// My Applications.
    Application in applications {
        applications::ApplicationPage,
        applications::ApplicationsPage,
        applications::CodesPage,
        applications::DepositSlipPage,
        applications::InboxPage,
        applications::KeysPage,
        applications::MessagesPage,
        applications::NewApplicationPage,
        applications::QuickStartPage,
        applications::ReceiptPage,
        applications::SenderNamePage,
        applications::SettingsPage,
        applications::StatementPage,
        file_check::FileCheckPage,
        opt_outs::OptOutsPage,
        webhooks::EndpointPage,
        webhooks::WebhookEventPage,
        webhooks::WebhooksPage,
    }
    /// The pages of an account, and reports on all its applications.
    Account in account {
        account::AccountPage,
        account::BillingPage,
        account::ChangeEmailPage,
        account::ClosePage,
        account::DevicesPage,
        account::NumberPage,
        account::StopEmailChangePage,
        account::TwoFactorPage,
        reports::ReportPage,
        reports::ReportsPage,
    }
    /// The pages of staff.
    Staff in staff {
        support::ApprovalsPage,
        support::AssignPage,
        support::AuditPage,
        support::CarrierReceiptsPage,
        support::CarriersPage,
        support::ConfirmActPage,
        support::DepositsPage,
        support::DeskFrame,
        support::ImportPage,
        support::MailsPage,
        support::MarginPage,
        support::NumbersPage,
        support::SendersPage,
        support::SupportAccountPage,
        support::SupportAccountsPage,
        support::SupportApplicationsPage,
        support::SupportMessagePage,
        support::SupportPage,
        support::SupportPricesPage,
        support::SupportSearchPage,
        support::UnassignedPage,
        support::VisitPage,
    }
}

/// Makes the browser load the page from the server. Needed if the browser has no code for the page,
/// or can't load it, for example because a newer version of the portal replaced the file.
#[component]
pub fn OpenAnew() -> impl IntoView {
    let location = use_location();
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
