//! Accounts: registration, sign-in, password, devices.

mod close;
mod confirm;
mod devices;
mod email;
mod fields;
mod forgot;
mod mails;
mod passkeys;
mod register;
mod reset;
mod settings;
mod sign_in;
mod sign_in_code;
mod theme;
mod time_zone;
mod two_factor;

use domain::records::{AccountRecord, SessionEnd};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::portal_request::current_request;
use crate::problem::Problem;

pub use close::ClosePage;
pub use confirm::{ConfirmPage, Unconfirmed};
pub use devices::DevicesPage;
pub use email::{ChangeEmailPage, StopEmailChangePage};
pub use fields::PasswordField;
pub use forgot::ForgotPage;
pub use register::RegisterPage;
pub use reset::ResetPage;
pub use settings::{AccountPage, LoadAccount};
pub use sign_in::SignInPage;
pub use sign_in_code::SignInCodePage;
pub use two_factor::TwoFactorPage;

/// The path of the file with the data of the account that is signed in.
pub const EXPORT_PATH: &str = "/account/export.json";

/// The account that is signed in, with what the frame of every page shows of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Viewer {
    pub account: AccountRecord,
    /// Whether all that the account may do is set up a second factor.
    pub must_set_up: bool,
    /// When this browser's session ends.
    pub session_end: Option<SessionEnd>,
}

/// The account that is signed in, if there is one.
#[server(prefix = "/fn", endpoint = "viewer", input = GetUrl)]
pub async fn load_viewer() -> Result<Option<Viewer>, Problem> {
    let current = current_request()?;
    let Some(account) = current.session_account().await? else {
        return Ok(None);
    };
    // It may have been chosen in another browser.
    current.keep_theme(account.theme);
    Ok(Some(Viewer {
        must_set_up: current.service().must_set_up_factor(&account),
        account,
        session_end: current.session_end().await?,
    }))
}

/// When this browser's session ends, if somebody is signed in. To ask puts nothing off: pages ask
/// by themselves.
#[server(prefix = "/fn", endpoint = "session", input = GetUrl)]
pub async fn load_session() -> Result<Option<SessionEnd>, Problem> {
    current_request()?.session_end().await
}

/// Ends this browser's session.
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
