//! Accounts: registration, sign-in, password, devices.

mod devices;
mod fields;
mod forgot;
mod register;
mod reset;
mod settings;
mod sign_in;

use domain::records::AccountRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

#[cfg(feature = "ssr")]
use crate::portal_request::current_request;
use crate::problem::Problem;

pub use devices::DevicesPage;
pub use fields::PasswordField;
pub use forgot::ForgotPage;
pub use register::RegisterPage;
pub use reset::ResetPage;
pub use settings::{AccountPage, LoadAccount};
pub use sign_in::SignInPage;

/// The account that is signed in, if there is one.
///
/// # Errors
/// When the service fails.
#[server(prefix = "/fn", endpoint = "viewer", input = GetUrl)]
pub async fn load_viewer() -> Result<Option<AccountRecord>, Problem> {
    current_request()?.account().await
}

/// Ends this browser's session.
///
/// # Errors
/// When the service fails.
#[server(prefix = "/fn", endpoint = "sign-out")]
pub async fn sign_out() -> Result<(), Problem> {
    current_request()?.sign_out().await?;
    leptos_axum::redirect("/");
    Ok(())
}

/// The page to go to after signing in, from the address of this one.
fn next_page() -> String {
    leptos_router::hooks::use_query_map()
        .with_untracked(|query| query.get("next"))
        .unwrap_or_default()
}
