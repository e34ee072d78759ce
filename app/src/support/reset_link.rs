//! A reset link that staff make. The session holds it until the account's page shows it once.

use service::Actor;

use crate::portal_request::CurrentRequest;
use crate::problem::Problem;

/// The session entry that holds a new link.
const NEW_LINK: &str = "account-reset-link";

/// Makes a link and keeps it for the account's page.
///
/// # Errors
/// `NoSuchAccount`.
pub async fn keep_reset_link(
    current: &CurrentRequest,
    actor: &Actor,
    email: &str,
) -> Result<(), Problem> {
    let token = current.service().accounts().issue_reset(actor, email).await?;
    let link = format!("{}/reset/{token}", current.site().base_url);
    current.keep_text(NEW_LINK, &link).await.map_err(Problem::after_change)
}

/// Returns a new link, once.
///
/// # Errors
/// `Cause::Failed` if the session can't be read.
pub async fn take_reset_link(current: &CurrentRequest) -> Result<Option<String>, Problem> {
    current.take_text(NEW_LINK).await
}
