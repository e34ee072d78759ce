//! The server functions that add and remove opt-outs.

use domain::Reference;
use leptos::prelude::*;

use crate::problem::Problem;
#[cfg(feature = "ssr")]
use {
    super::query::OptOutsQuery,
    crate::portal_request::{current_request, redirect_to, signed_in},
    crate::problem::{Cause, Filter},
    domain::{KeyKind, Number, NumberWarning},
    service::{OptOutAuthor, OptOutChange},
};

/// Adds a number to the list of a key.
#[server(prefix = "/fn", endpoint = "add-opt-out")]
pub async fn add_opt_out(reference: Reference, key: String, number: String) -> Result<(), Problem> {
    let with_text = |problem: Problem| problem.typed("number", &number);
    let parsed = Number::parse_typed(&number);
    let parsed = parsed.map_err(|_| with_text(Cause::Filter(Filter::Number).into()))?;
    let kind = KeyKind::parse(&key).ok_or(Cause::Unreadable)?;
    let notice = if is_doubtful(&parsed)? { "doubtful" } else { "added" };
    make(reference, kind, OptOutChange::Add(parsed)).await.map_err(with_text)?;
    redirect_to(&OptOutsQuery::of(kind).address(reference, notice))
}

/// Whether a number is probably a mistake.
#[cfg(feature = "ssr")]
fn is_doubtful(number: &Number) -> Result<bool, Problem> {
    let current = current_request()?;
    let mut warnings = number.warnings(&current.site().home.code);
    // The list has local numbers with the country code in any case.
    Ok(warnings.any(|warning| warning != NumberWarning::LooksLocal))
}

/// Removes a number from the list of a key. The number has a plus sign.
#[server(prefix = "/fn", endpoint = "remove-opt-out")]
pub async fn remove_opt_out(
    reference: Reference,
    key: String,
    number: String,
) -> Result<(), Problem> {
    let parsed = Number::parse_typed(&number).map_err(|_| Cause::Unreadable)?;
    let kind = KeyKind::parse(&key).ok_or(Cause::Unreadable)?;
    make(reference, kind, OptOutChange::Remove(parsed)).await?;
    redirect_to(&OptOutsQuery::of(kind).address(reference, "removed"))
}

#[cfg(feature = "ssr")]
async fn make(reference: Reference, kind: KeyKind, change: OptOutChange) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let access = service.webhooks().access_of(account.id, reference, kind).await?;
    let author = OptOutAuthor::Owner(account.id);
    service.applications().change_opt_outs(&access, change, author, None).await?;
    Ok(())
}
