//! Shows a new secret or the findings of a check once, on the endpoint's page.

use domain::endpoint_check::Finding;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::check::findings_section;
use crate::applications::Once;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::SecretField;
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{CurrentRequest, current_request, is_shown},
    crate::problem::Cause,
    domain::WebhookId,
};

/// News of an endpoint. Not `Debug`, so that a secret can't be logged by accident.
#[derive(Clone, Serialize, Deserialize)]
pub enum News {
    Secret {
        secret: String,
        /// Whether it replaces an older secret, which also signs for a day.
        is_rotated: bool,
    },
    Check(Vec<Finding>),
}

/// Returns the session entry that holds an endpoint's news.
#[cfg(feature = "ssr")]
fn entry(id: WebhookId) -> String {
    format!("webhook-{id}")
}

/// Stores news, encrypted, until the endpoint's page shows them.
#[cfg(feature = "ssr")]
pub async fn keep(current: &CurrentRequest, id: WebhookId, news: &News) -> Result<(), Problem> {
    let text = serde_json::to_string(news).map_err(|_| Cause::Failed)?;
    current.keep_text(&entry(id), &text).await
}

/// Returns an endpoint's news and deletes them. Uses POST, because it changes state.
#[server(prefix = "/fn", endpoint = "take-webhook-news")]
pub async fn take_webhook_news(webhookid: String) -> Result<Option<News>, Problem> {
    if !is_shown() {
        return Ok(None);
    }
    let id = WebhookId::parse(&webhookid).ok_or(Cause::NotFound)?;
    let text = current_request()?.take_text(&entry(id)).await?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

const ROTATED: &str = " Until then, each request has two signatures: one with this secret and one \
                       with the old secret. The old one stops signing in 24 hours.";

/// Shows an endpoint's news, if there are any.
pub fn shown_once(news: PageData<Option<News>>) -> impl IntoView + use<> {
    let shown = move || {
        Suspend::new(async move {
            match news.get().await.ok().flatten() {
                Some(News::Secret { secret, is_rotated }) => {
                    view! { <Secret secret is_rotated/> }.into_any()
                }
                Some(News::Check(findings)) => {
                    view! { <Once>{findings_section(&findings)}</Once> }.into_any()
                }
                None => ().into_any(),
            }
        })
    };
    view! { <Transition>{shown}</Transition> }
}

#[component]
fn Secret(secret: String, is_rotated: bool) -> impl IntoView {
    view! {
        <Once>
            <p>
                <strong>"Save this now. It is shown only once."</strong>
                " We sign each request with this secret. Your system verifies the header \
                 webhook-signature with it, so that nobody else can send you events. "
                <a href="/docs#webhooks" rel="external">"How to verify signatures"</a>
            </p>
            {is_rotated
                .then(|| {
                    view! { <p>"Give your system the new secret within 24 hours." {ROTATED}</p> }
                })}
            <SecretField
                label="Signing secret"
                name="webhook-secret"
                value=secret
                copy_label="Copy secret"
            />
        </Once>
    }
}
