//! Accounts: registration, sign-in, password, devices.

mod billing;
mod close;
mod confirm;
mod devices;
mod email;
mod fields;
mod forgot;
mod mails;
mod number;
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
use crate::portal_request::{current_request, redirect_to};
use crate::problem::Problem;

pub use billing::{BILLING_PATH, BillingPage, SetBilling};
pub use close::ClosePage;
pub use confirm::{ConfirmPage, Unconfirmed};
pub use devices::DevicesPage;
pub use email::{ChangeEmailPage, StopEmailChangePage};
pub use fields::PasswordField;
pub use forgot::ForgotPage;
pub use number::NumberPage;
pub use register::RegisterPage;
pub use reset::ResetPage;
pub use settings::{AccountPage, LoadAccount};
pub use sign_in::SignInPage;
pub use sign_in_code::SignInCodePage;
pub use two_factor::{TwoFactorPage, codes_left};

/// The path of the export of the signed-in account's data.
pub const EXPORT_PATH: &str = "/account/export.json";

/// The path of the page with the data of one phone number.
pub const NUMBER_PATH: &str = "/account/number";
/// The path of the export of what is stored about a phone number.
pub const NUMBER_EXPORT_PATH: &str = "/account/number.json";

/// The signed-in account, with the data that the frame of every page shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Viewer {
    pub account: AccountRecord,
    /// Whether the account must set up a second factor before it can do anything else.
    pub must_set_up: bool,
    /// The end of this browser's session.
    pub session_end: Option<SessionEnd>,
    /// The version of the program, for staff only: programs that look for servers with known holes
    /// sort them by version (OWASP ASVS 4.0.3, 14.3.3).
    pub version: Option<String>,
}

/// Loads the signed-in account, if there is one.
#[server(prefix = "/fn", endpoint = "viewer", input = GetUrl)]
pub async fn load_viewer() -> Result<Option<Viewer>, Problem> {
    let current = current_request()?;
    let Some(account) = current.session_account().await? else {
        return Ok(None);
    };
    // The theme may have been set in another browser.
    current.keep_theme(account.theme);
    let must_set_up = current.service().accounts().must_set_up_factor(&account);
    Ok(Some(Viewer {
        version: (account.staff && !must_set_up).then(|| current.site().version.to_owned()),
        must_set_up,
        account,
        session_end: current.session_end().await?,
    }))
}

/// Loads the end of this browser's session, or `None` if nobody is signed in. Doesn't extend the
/// session, since pages call this without a user's action.
#[server(prefix = "/fn", endpoint = "session", input = GetUrl)]
pub async fn load_session() -> Result<Option<SessionEnd>, Problem> {
    current_request()?.session_end().await
}

/// Ends this browser's session.
#[server(prefix = "/fn", endpoint = "sign-out")]
pub async fn sign_out() -> Result<(), Problem> {
    current_request()?.sign_out().await?;
    redirect_to("/")
}

/// Returns the page to open after signing in, from this page's address.
fn next_page() -> String {
    leptos_router::hooks::use_query_map()
        .with_untracked(|query| query.get("next"))
        .unwrap_or_default()
}
