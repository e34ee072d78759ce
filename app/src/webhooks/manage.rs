//! The server functions that change endpoints.

use domain::{Reference, WebhookId};
use leptos::prelude::*;

use crate::problem::Problem;
#[cfg(feature = "ssr")]
use {
    super::news::{News, keep},
    super::types::{FIELD, chosen},
    crate::portal_request::{CurrentRequest, redirect_to, signed_in},
    crate::problem::Cause,
    domain::KeyKind,
    service::{KeyAccess, WebhookChange},
};

/// Actions on an endpoint, as the forms send them.
pub const TEST: &str = "test";
pub const CHECK: &str = "check";
pub const ENABLE: &str = "enable";
pub const ROTATE: &str = "rotate";
pub const REMOVE: &str = "remove";

/// Creates an endpoint. Its page shows the secret once.
#[server(prefix = "/fn", endpoint = "create-webhook")]
pub async fn create_webhook(
    reference: Reference,
    url: String,
    kind: String,
    #[server(default)] events: Vec<String>,
) -> Result<(), Problem> {
    let with_text = |problem: Problem| {
        let problem = problem.typed("url", &url).typed("kind", &kind);
        problem.typed(FIELD, &events.join(","))
    };
    let (current, account) = signed_in().await.map_err(with_text)?;
    let key = KeyKind::parse(&kind).ok_or(Cause::Unreadable)?;
    let wanted = chosen(&events)?;
    let webhooks = current.service().webhooks();
    let access = webhooks.access_of(account.id, reference, key).await?;
    let url = webhooks.endpoint_url(url.trim()).map_err(|error| with_text(error.into()))?;
    let created =
        webhooks.change(&access, WebhookChange::Create { url, types: wanted }, None).await;
    let created = created.map_err(|error| with_text(error.into()))?;
    let id = created.record.webhookid;
    if let Some(secret) = created.secret {
        let news = News::Secret { secret: secret.expose(), is_rotated: false };
        keep(&current, id, &news).await.map_err(Problem::after_change)?;
    }
    redirect_to(&page(reference, id, ""))
}

/// Tests, checks, enables or removes an endpoint, or gives it a new secret.
#[server(prefix = "/fn", endpoint = "change-webhook")]
pub async fn change_webhook(
    reference: Reference,
    webhookid: String,
    action: String,
) -> Result<(), Problem> {
    let (current, access, id) = access(reference, &webhookid).await?;
    let next = match action.as_str() {
        TEST => {
            current.endpoints().test(&access, id).await?;
            page(reference, id, "?tested=1")
        }
        CHECK => {
            let findings = current.endpoints().check(&access, id).await?;
            keep(&current, id, &News::Check(findings)).await.map_err(Problem::after_change)?;
            page(reference, id, "")
        }
        ENABLE => {
            change(&current, &access, WebhookChange::Enable(id)).await?;
            page(reference, id, "?enabled=1")
        }
        ROTATE => {
            change(&current, &access, WebhookChange::Rotate(id)).await?;
            page(reference, id, "")
        }
        REMOVE => {
            change(&current, &access, WebhookChange::Remove(id)).await?;
            format!("/applications/{reference}/webhooks?removed=1")
        }
        _ => return Err(Cause::Unreadable.into()),
    };
    redirect_to(&next)
}

/// Changes the URL of an endpoint.
#[server(prefix = "/fn", endpoint = "move-webhook")]
pub async fn move_webhook(
    reference: Reference,
    webhookid: String,
    url: String,
) -> Result<(), Problem> {
    let with_text = |problem: Problem| problem.typed("url", &url);
    let (current, access, id) = access(reference, &webhookid).await.map_err(with_text)?;
    let checked = current.service().webhooks().endpoint_url(url.trim());
    let checked = checked.map_err(|error| with_text(error.into()))?;
    change(&current, &access, WebhookChange::Url(id, checked)).await.map_err(with_text)?;
    redirect_to(&page(reference, id, "?moved=1"))
}

/// Changes the types of events that an endpoint gets.
#[server(prefix = "/fn", endpoint = "set-webhook-events")]
pub async fn set_webhook_events(
    reference: Reference,
    webhookid: String,
    #[server(default)] events: Vec<String>,
) -> Result<(), Problem> {
    let with_text = |problem: Problem| problem.typed(FIELD, &events.join(","));
    let (current, access, id) = access(reference, &webhookid).await.map_err(with_text)?;
    let wanted = chosen(&events)?;
    change(&current, &access, WebhookChange::Types(id, wanted)).await.map_err(with_text)?;
    redirect_to(&page(reference, id, "?chosen=1"))
}

/// Returns the request, and the access to an endpoint of one of the account's applications.
#[cfg(feature = "ssr")]
pub async fn access(
    reference: Reference,
    webhookid: &str,
) -> Result<(CurrentRequest, KeyAccess, WebhookId), Problem> {
    let (current, account) = signed_in().await?;
    let id = WebhookId::parse(webhookid).ok_or(Cause::NotFound)?;
    let access = current.service().webhooks().access_to(account.id, reference, id).await?;
    Ok((current, access, id))
}

/// Makes a change of an endpoint. If it has a new secret, the endpoint's page shows it once.
#[cfg(feature = "ssr")]
pub async fn change(
    current: &CurrentRequest,
    access: &KeyAccess,
    change: WebhookChange,
) -> Result<(), Problem> {
    let changed = current.service().webhooks().change(access, change, None).await?;
    if let Some(secret) = changed.secret {
        let news = News::Secret { secret: secret.expose(), is_rotated: true };
        let kept = keep(current, changed.record.webhookid, &news).await;
        kept.map_err(Problem::after_change)?;
    }
    Ok(())
}

/// Returns the address of an endpoint's page.
pub fn page(reference: Reference, id: WebhookId, rest: &str) -> String {
    format!("/applications/{reference}/webhooks/{id}{rest}")
}
